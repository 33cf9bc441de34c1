import { NativeSelect, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import type { Json, Path } from "../../../../lib/document";
import type { Shape } from "../../../../lib/schema";
import { Words } from "../../../../parts/Words";
import { useForm } from "./context";
import { Remove } from "./Frame";
import { findingsAt, parse } from "./values";

interface Props {
  path: Path;
  shape: Shape;
  value: Json | undefined;
  required: boolean;
}

/** A field with one value. */
export function ScalarField(props: Props) {
  const { kind } = props.shape;
  return kind === "choice" || kind === "boolean" ? <ChoiceField {...props} /> : <TextField {...props} />;
}

function useCommon({ path, shape, required }: Props) {
  const { showHelp, findings, locked } = useForm();
  return {
    label: String(path.at(-1)),
    description: showHelp && shape.description ? <Words text={shape.description} /> : undefined,
    error: findingsAt(findings, path),
    disabled: locked,
    size: "xs",
    required,
    rightSection: required ? undefined : <Remove path={path} />,
    rightSectionPointerEvents: "all" as const,
  };
}

function ChoiceField(props: Props) {
  const { path, shape, value } = props;
  const { set } = useForm();
  const common = useCommon(props);
  const isBoolean = shape.kind === "boolean";
  const choices = isBoolean ? ["true", "false"] : shape.choices.map((choice) => choice.value);
  const present = String(value ?? "");
  const chosen = shape.choices.find((choice) => choice.value === value);
  return (
    <NativeSelect
      {...common}
      description={
        common.description && (
          <Words text={[shape.description, chosen?.description].filter(Boolean).join(" ")} />
        )
      }
      rightSection={undefined}
      data={choices.includes(present) ? choices : [present, ...choices]}
      value={present}
      onChange={(event) => {
        const text = event.currentTarget.value;
        set(path, isBoolean ? text === "true" : text);
      }}
    />
  );
}

/** What is written is in the document at once if it is valid; nothing takes the field away. */
function TextField(props: Props) {
  const { path, shape, value, required } = props;
  const { set, remove } = useForm();
  const common = useCommon(props);
  const [text, setText] = useState(String(value ?? ""));
  const [error, setError] = useState<string>();
  useEffect(() => {
    setText((before) => {
      const same = parse(shape, before);
      return same.error === undefined && same.value === value ? before : String(value ?? "");
    });
    setError(undefined);
  }, [value, shape]);
  return (
    <TextInput
      {...common}
      error={error ?? common.error}
      inputMode={shape.kind === "integer" ? "numeric" : shape.kind === "number" ? "decimal" : undefined}
      value={text}
      onChange={(event) => {
        const after = event.currentTarget.value;
        setText(after);
        if (after === "") return setError(undefined);
        const parsed = parse(shape, after);
        setError(parsed.error);
        if (parsed.error === undefined) set(path, parsed.value);
      }}
      onBlur={() => {
        if (text !== "") return;
        if (required) setText(String(value ?? ""));
        else remove(path);
      }}
    />
  );
}
