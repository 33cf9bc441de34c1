import { createContext, useContext } from "react";
import type { Finding, Schemas } from "../../../../api/types";
import type { Json, Path } from "../../../../lib/document";
import type { OwnerSchemas } from "../../../../lib/schema";

/** What every field of the form knows. */
export interface Form {
  service: string;
  schemas: OwnerSchemas;
  value: Json;
  /** What is active now, with the parts of others. */
  effective: Schemas["Effective"] | undefined;
  findings: Finding[];
  /** Nobody but owners may edit; others see it, and why. */
  locked: boolean;
  showHelp: boolean;
  set: (path: Path, value: Json) => void;
  remove: (path: Path) => void;
  move: (list: Path, from: number, to: number) => void;
  rename: (path: Path, name: string) => void;
}

export const FormContext = createContext<Form | undefined>(undefined);

export function useForm(): Form {
  const form = useContext(FormContext);
  if (!form) throw new Error("outside of a form");
  return form;
}
