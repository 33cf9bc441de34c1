import { Button, Menu, Stack, Text } from "@mantine/core";
import { Lock, Plus } from "lucide-react";
import type { ReactNode } from "react";
import { get, type Json, type Path } from "../../../../lib/document";
import { ownerOf, type RawSchema, type Shape, shapeOf } from "../../../../lib/schema";
import { Words } from "../../../../parts/Words";
import { useForm } from "./context";
import { Field } from "./Field";
import { Frame } from "./Frame";
import { InheritedField } from "./InheritedField";
import { blank, isScalarKind, keysOf } from "./values";

export interface CompositeProps {
  path: Path;
  shape: Shape;
  value: Json | undefined;
  required: boolean;
  title?: ReactNode;
  actions?: ReactNode;
}

/** A field with fields of its own: those that are there, and a menu of the others. */
export function ObjectField({ path, shape, required, title, actions }: CompositeProps) {
  return (
    <Frame
      path={path}
      title={title ?? String(path.at(-1))}
      help={shape.description}
      required={required}
      actions={actions}
    >
      <Fields path={path} shape={shape} />
    </Frame>
  );
}

/** The fields of an object: short ones beside each other, then those with fields of their own. */
export function Fields({ path, shape }: { path: Path; shape: Shape }) {
  const { schemas, value, effective } = useForm();
  const here = get(value, path);
  const there = Object.entries(shape.fields).filter(([name]) => {
    const below = [...path, name];
    const locked = ownerOf(schemas, below) !== "service";
    const written = keysOf(here).includes(name) || shape.required.includes(name);
    // What others write is always there to be seen and asked for; deeper down only if there is something.
    const shown = path.length === 2 || (effective && get(effective.document as Json, below) !== undefined);
    return written || (locked && shown);
  });
  const isShort = ([name, raw]: [string, RawSchema]) =>
    ownerOf(schemas, [...path, name]) === "service" && isScalarKind(shapeOf(schemas.all, raw));
  const field = ([name, raw]: [string, RawSchema]) => (
    <Field key={name} path={[...path, name]} raw={raw} required={shape.required.includes(name)} />
  );
  const short = there.filter(isShort);
  return (
    <Stack gap="sm">
      {short.length > 0 && <div className="short-fields">{short.map(field)}</div>}
      {there.filter((each) => !isShort(each)).map(field)}
      {Object.keys(shape.fields)
        .filter((name) => !there.some(([written]) => written === name))
        .map((name) => (
          <InheritedField key={name} path={[...path, name]} />
        ))}
      <AddMenu path={path} shape={shape} there={there.map(([name]) => name)} />
    </Stack>
  );
}

function AddMenu({ path, shape, there }: { path: Path; shape: Shape; there: string[] }) {
  const { schemas, set, locked } = useForm();
  const missing = Object.entries(shape.fields).filter(([name]) => !there.includes(name));
  if (locked || missing.length === 0) return null;
  const where = path.length > 2 ? ` to ${path.at(-1)}` : "";
  return (
    <Menu position="bottom-start" width={380} menuItemTabIndex={0}>
      <Menu.Target>
        <Button
          variant="subtle"
          size="compact-xs"
          w="fit-content"
          leftSection={<Plus size={12} aria-hidden />}
        >
          Add{typeof path.at(-1) === "number" ? "" : where} …
        </Button>
      </Menu.Target>
      <Menu.Dropdown className="add-menu">
        {missing.map(([name, raw]) => {
          const owner = ownerOf(schemas, [...path, name]);
          const foreign = owner !== "service";
          return (
            <Menu.Item
              key={name}
              disabled={foreign}
              leftSection={foreign ? <Lock size={12} aria-hidden /> : undefined}
              onClick={() => set([...path, name], blank(schemas.all, raw))}
            >
              <Text size="sm" fw={500}>
                {name}
                {foreign && `: only ${owner} writes it`}
              </Text>
              <Text size="xs" c="dimmed" lineClamp={2}>
                <Words text={shapeOf(schemas.all, raw).description ?? ""} />
              </Text>
            </Menu.Item>
          );
        })}
      </Menu.Dropdown>
    </Menu>
  );
}
