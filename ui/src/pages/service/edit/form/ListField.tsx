import { ActionIcon, Button, Group, Stack, TagsInput, Text, Tooltip } from "@mantine/core";
import { ArrowDown, ArrowUp, Plus } from "lucide-react";
import { get, type Json, type Path } from "../../../../lib/document";
import { schemaAt, shapeOf } from "../../../../lib/schema";
import { Words } from "../../../../parts/Words";
import { useForm } from "./context";
import { Frame } from "./Frame";
import { type CompositeProps, Fields } from "./ObjectField";
import { blank, findingsAt, freshName, isScalarKind } from "./values";

/** A list: of words, or of objects in an order that can be changed. */
export function ListField({ path, shape, value, required }: CompositeProps) {
  const { schemas, set, locked, showHelp, findings } = useForm();
  const items = Array.isArray(value) ? value : [];
  const raw = shape.item ?? {};
  const item = shapeOf(schemas.all, raw);
  if (isScalarKind(item)) {
    return (
      <TagsInput
        label={String(path.at(-1))}
        description={showHelp && shape.description ? <Words text={shape.description} /> : undefined}
        error={findingsAt(findings, path)}
        size="xs"
        disabled={locked}
        required={required}
        data={item.choices.map((choice) => choice.value)}
        value={items.map(String)}
        onChange={(words) => set(path, words)}
        splitChars={[","]}
        acceptValueOnBlur
      />
    );
  }
  const add = () => {
    const names = items.map((each) => String(get(each, ["name"]) ?? ""));
    const fresh = blank(schemas.all, raw);
    const named =
      item.required.includes("name") && fresh && typeof fresh === "object" && !Array.isArray(fresh);
    set([...path, items.length], named ? { ...fresh, name: freshName("new", names) } : fresh);
  };
  return (
    <Frame
      path={path}
      title={`${path.at(-1)} (${items.length})`}
      help={shape.description}
      required={required}
    >
      <Stack gap="xs">
        {items.map((each, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the place in the list is what an element is known by
          <Item key={index} path={[...path, index]} count={items.length} value={each} />
        ))}
        {items.length === 0 && (
          <Text size="sm" c="dimmed">
            An empty list.
          </Text>
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

function Item({ path, count, value }: { path: Path; count: number; value: Json }) {
  const { schemas } = useForm();
  const index = Number(path.at(-1));
  const list = path.slice(0, -1);
  const raw = schemaAt(schemas.all, path) ?? {};
  const shape = shapeOf(schemas.all, raw);
  const name = get(value, ["name"]) ?? get(value, ["service"]) ?? get(value, ["subset"]);
  return (
    <Frame
      path={path}
      title={
        <Group gap={6} component="span" display="inline-flex">
          <span className="dim">{index + 1}</span>
          {typeof name === "string" ? name : ""}
        </Group>
      }
      required={false}
      actions={<Order list={list} index={index} count={count} />}
    >
      <Fields path={path} shape={shape} />
    </Frame>
  );
}

function Order({ list, index, count }: { list: Path; index: number; count: number }) {
  const { move, locked } = useForm();
  if (locked || count < 2) return null;
  const button = (to: number, label: string, Icon: typeof ArrowUp) => (
    <Tooltip label={label}>
      <ActionIcon
        size="sm"
        variant="subtle"
        color="gray"
        aria-label={`${label}: ${list.at(-1)} ${index + 1}`}
        disabled={to < 0 || to >= count}
        onClick={() => move(list, index, to)}
      >
        <Icon size={14} aria-hidden />
      </ActionIcon>
    </Tooltip>
  );
  return (
    <>
      {button(index - 1, "Earlier", ArrowUp)}
      {button(index + 1, "Later", ArrowDown)}
    </>
  );
}
