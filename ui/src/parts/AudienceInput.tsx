import { Autocomplete } from "@mantine/core";

const EXAMPLES = [
  "everyone",
  "10%",
  "host=NAME",
  "zone=NAME",
  "label:KEY=VALUE",
  "workload=SERVICE/CLUSTER",
  "tier=NAME",
];

interface Props {
  value: string;
  onChange: (value: string) => void;
  error?: string;
}

/** Who gets something. Tower checks it. */
export function AudienceInput({ value, onChange, error }: Props) {
  return (
    <Autocomplete
      label="Audience"
      description="Terms are joined with &, as in zone=us-east-1a&10%."
      placeholder="everyone"
      data={EXAMPLES}
      filter={({ options }) => options}
      value={value}
      onChange={onChange}
      error={error}
      maxLength={500}
    />
  );
}
