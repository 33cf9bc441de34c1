import { Badge, Button, Menu, Text, useMantineColorScheme } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Check, Keyboard, LogOut, Monitor, Moon, Sun, User } from "lucide-react";
import { problemOf } from "../api/problem";
import { signOut, whoami } from "../api/session";
import { announce } from "../lib/announce";
import { useUtc } from "../lib/preferences";
import { When } from "../parts/When";

const SCHEMES = [
  { value: "light", label: "Light", Icon: Sun },
  { value: "dark", label: "Dark", Icon: Moon },
  { value: "auto", label: "As the system", Icon: Monitor },
] as const;

/** Who one is and what one may do, how things look, and the way out. */
export function AccountMenu({ onHelp }: { onHelp: () => void }) {
  const client = useQueryClient();
  const { data: who } = useQuery(whoami);
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const [utc, setUtc] = useUtc();
  if (!who) return null;
  const tick = (on: boolean) => (on ? <Check size={14} aria-hidden /> : undefined);
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
        {SCHEMES.map(({ value, label, Icon }) => (
          <Menu.Item
            key={value}
            role="menuitemradio"
            aria-checked={colorScheme === value}
            leftSection={<Icon size={14} aria-hidden />}
            rightSection={tick(colorScheme === value)}
            onClick={() => setColorScheme(value)}
          >
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item
          role="menuitemcheckbox"
          aria-checked={utc}
          rightSection={tick(utc)}
          closeMenuOnClick={false}
          onClick={() => setUtc(!utc)}
        >
          Times in UTC
        </Menu.Item>
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
