import { lazy } from "react";

// CodeMirror is as large as all of the rest: it is loaded by the pages that show documents.
export const ReadOnlyYaml = lazy(() => import("./ReadOnlyYaml"));
export const YamlEditor = lazy(() => import("./YamlEditor"));
export const TextDiff = lazy(() => import("./TextDiff"));
