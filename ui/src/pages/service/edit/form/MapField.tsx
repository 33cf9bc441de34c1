import { Button, Group, Stack, TextInput } from "@mantine/core";
import { Plus } from "lucide-react";
import { useEffect, useState } from "react";
import { get, type Path } from "../../../../lib/document";
import { shapeOf } from "../../../../lib/schema";
import { useForm } from "./context";
import { Frame, Remove } from "./Frame";
import type { CompositeProps } from "./ObjectField";
import { freshName, keysOf } from "./values";

/** A map with names of one's own: of words, or of maps of words. */
export function MapField({ path, shape, value, required, title, actions }: CompositeProps) {
  const { schemas, set, locked } = useForm();
  const keys = keysOf(value);
  const item = shapeOf(schemas.all, shape.item ?? {});
  const isMap = item.kind === "map";
  const add = () => set([...path, freshName("name", keys)], isMap ? {} : "");
  return (
    <Frame
      path={path}
      title={title ?? String(path.at(-1))}
      help={shape.description}
      required={required}
      actions={actions}
    >
      <Stack gap="xs">
        {keys.map((key) =>
          isMap ? (
            <MapField
              key={key}
              path={[...path, key]}
              shape={{ ...item, description: undefined }}
              value={get(value, [key])}
              required={false}
              title={<Key path={[...path, key]} />}
            />
          ) : (
            <Group key={key} gap="xs" wrap="nowrap" align="flex-end">
              <Key path={[...path, key]} />
              <Word path={[...path, key]} value={String(get(value, [key]) ?? "")} />
              <Remove path={[...path, key]} />
            </Group>
          ),
        )}
        {!locked && (
          <Button
            variant="subtle"
            size="compact-xs"
            w="fit-content"
            leftSection={<Plus size={12} aria-hidden />}
            onClick={add}
          >
            Add to {path.at(-1)}
          </Button>
        )}
      </Stack>
    </Frame>
  );
}

/** The name itself, which can be changed. */
function Key({ path }: { path: Path }) {
  const { rename, locked } = useForm();
  const name = String(path.at(-1));
  return (
    <Committed
      label={`Name of ${name}`}
      value={name}
      disabled={locked}
      onCommit={(text) => text !== "" && rename(path, text)}
    />
  );
}

function Word({ path, value }: { path: Path; value: string }) {
  const { set, locked } = useForm();
  return (
    <Committed
      label={`Value of ${path.at(-1)}`}
      value={value}
      disabled={locked}
      onCommit={(text) => set(path, text)}
    />
  );
}

interface CommittedProps {
  label: string;
  value: string;
  disabled: boolean;
  onCommit: (text: string) => void;
}

/** Takes effect when one leaves it, or presses Enter. */
function Committed({ label, value, disabled, onCommit }: CommittedProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const commit = () => text !== value && onCommit(text.trim());
  return (
    <TextInput
      aria-label={label}
      size="xs"
      w={180}
      disabled={disabled}
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => event.key === "Enter" && commit()}
    />
  );
}
