import { AppShell, Burger, Group, Kbd, NavLink, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Search } from "lucide-react";
import { useEffect, useRef } from "react";
import { Link, Outlet, NavLink as RouterLink, useLocation } from "react-router";
import { announce, useAnnouncement } from "../lib/announce";
import { AccountMenu } from "./AccountMenu";
import { HelpDialog } from "./HelpDialog";
import icon from "./icon.svg";
import { LiveBanner, LiveSign } from "./LiveSign";
import { openPalette, Palette } from "./Palette";
import { places } from "./places";
import { useKeyboard } from "./useKeyboard";

/** What is around every page. */
export function Layout() {
  const [navigation, { toggle, close }] = useDisclosure();
  const [help, helpDialog] = useDisclosure();
  const main = useRef<HTMLElement>(null);
  const announcement = useAnnouncement();
  useKeyboard(helpDialog.open);
  useArrival(main, close);
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 210, breakpoint: "sm", collapsed: { mobile: !navigation } }}
      padding="md"
    >
      <a className="skip-link" href="#main">
        Skip to the content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" gap="sm" wrap="nowrap">
          <Burger opened={navigation} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
          <Link to="/" className="quiet" aria-label="Tower: to the fleet">
            <Group gap={8} wrap="nowrap">
              <img src={icon} alt="" width={24} height={24} />
              <Text fw={700} size="lg" visibleFrom="xs">
                Tower
              </Text>
            </Group>
          </Link>
          <UnstyledButton className="palette-button" onClick={openPalette} ml={{ base: 0, sm: 86 }}>
            <Search size={14} aria-hidden />
            <span>Find a service, a host, a page</span>
            <Kbd size="xs">Ctrl K</Kbd>
          </UnstyledButton>
          <Group ml="auto" gap="xs" wrap="nowrap">
            <LiveSign />
            <AccountMenu onHelp={helpDialog.open} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Main">
        {places.map(({ to, label, Icon }) => (
          <NavLink
            key={to}
            component={RouterLink}
            to={to}
            end={to === "/"}
            label={label}
            leftSection={<Icon size={16} aria-hidden />}
            className="nav-link"
          />
        ))}
      </AppShell.Navbar>
      <AppShell.Main id="main" ref={main} tabIndex={-1}>
        <LiveBanner />
        <Outlet />
      </AppShell.Main>
      <Palette />
      <HelpDialog opened={help} onClose={helpDialog.close} />
      <div className="visually-hidden" role="status" aria-live="polite">
        {announcement}
      </div>
    </AppShell>
  );
}

/** On another page: its title is said, and the keyboard is where it begins. */
function useArrival(main: React.RefObject<HTMLElement | null>, closeNavigation: () => void) {
  const { pathname } = useLocation();
  const before = useRef(pathname);
  useEffect(() => {
    if (before.current === pathname) return;
    before.current = pathname;
    closeNavigation();
    const timer = setTimeout(() => announce(document.title), 300);
    if (!main.current?.contains(document.activeElement)) main.current?.focus({ preventScroll: true });
    return () => clearTimeout(timer);
  }, [pathname, main, closeNavigation]);
}
