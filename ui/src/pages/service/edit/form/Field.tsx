import { get, type Path } from "../../../../lib/document";
import { ownerOf, type RawSchema, shapeOf } from "../../../../lib/schema";
import { useForm } from "./context";
import { ListField } from "./ListField";
import { LockedField } from "./LockedField";
import { MapField } from "./MapField";
import { ObjectField } from "./ObjectField";
import { ScalarField } from "./ScalarField";
import { isScalarKind } from "./values";
import { YamlOnly } from "./YamlOnly";

export interface FieldProps {
  path: Path;
  raw: RawSchema;
  required: boolean;
}

/** A field by what its schema says it is; locked if it is another owner's. */
export function Field({ path, raw, required }: FieldProps) {
  const { schemas, value } = useForm();
  const owner = ownerOf(schemas, path);
  if (owner !== "service") return <LockedField path={path} owner={owner} />;
  const shape = shapeOf(schemas.all, raw);
  const here = get(value, path);
  const props = { path, shape, value: here, required };
  if (isScalarKind(shape)) return <ScalarField {...props} />;
  if (here !== undefined && (here === null || typeof here !== "object")) return <YamlOnly path={path} />;
  if (shape.kind === "list") return <ListField {...props} />;
  if (shape.kind === "map") return <MapField {...props} />;
  if (shape.kind === "object") return <ObjectField {...props} />;
  return <YamlOnly path={path} />;
}
