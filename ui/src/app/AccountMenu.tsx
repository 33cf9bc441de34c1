import { Badge, Button, Menu, Text, useMantineColorScheme } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Keyboard, LogOut, User } from "lucide-react";
import { problemOf } from "../api/problem";
import { signOut, whoami } from "../api/session";
import { announce } from "../lib/announce";
import { useUtc } from "../lib/preferences";
import { When } from "../parts/When";

const SCHEMES = [
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
  { value: "auto", label: "As the system" },
] as const;

/** Who one is and what one may do, how things look, and the way out. */
export function AccountMenu({ onHelp }: { onHelp: () => void }) {
  const client = useQueryClient();
  const { data: who } = useQuery(whoami);
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const [utc, setUtc] = useUtc();
  if (!who) return null;
  const leave = async () => {
    try {
      await signOut(who.csrf);
      client.clear();
      window.location.assign("/");
    } catch (error) {
      announce(problemOf(error).detail);
    }
  };
  return (
    <Menu width={280} position="bottom-end">
      <Menu.Target>
        <Button
          variant="default"
          leftSection={<User size={14} aria-hidden />}
          rightSection={<Badge size="sm">{who.roles.join(", ")}</Badge>}
        >
          {who.name}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {who.services.length > 0 && (
            <Text size="xs" className="break">
              Owner of {who.services.join(", ")}
            </Text>
          )}
          <Text size="xs">
            {who.expires_unix_ms ? (
              <>
                Signed in until <When ms={who.expires_unix_ms} exact />
              </>
            ) : (
              "The sign-in does not end"
            )}
          </Text>
          <Text size="xs">Tower {who.tower}</Text>
        </Menu.Label>
        <Menu.Divider />
        <Menu.RadioGroup
          value={colorScheme}
          onChange={(value) => setColorScheme(value as (typeof SCHEMES)[number]["value"])}
        >
          {SCHEMES.map(({ value, label }) => (
            <Menu.RadioItem key={value} value={value}>
              {label}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Divider />
        <Menu.CheckboxItem value="utc" checked={utc} onChange={() => setUtc(!utc)}>
          Times in UTC
        </Menu.CheckboxItem>
        <Menu.Item leftSection={<Keyboard size={14} aria-hidden />} onClick={onHelp}>
          Keys
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item leftSection={<LogOut size={14} aria-hidden />} onClick={() => void leave()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
