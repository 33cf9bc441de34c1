import { Button, type ButtonProps, Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { whoami } from "../api/session";
import { allowed, type Need } from "../lib/permissions";

interface Props extends ButtonProps {
  need: Need;
  /** Why it makes no sense now, if it does not. */
  unless?: string | false;
  onClick?: () => void;
  /** Where it leads, in place of `onClick`. */
  to?: string;
  children: ReactNode;
}

/** A button for those who may. Others see it, too, and are told why they may not. */
export function Act({ need, unless, onClick, to, children, ...rest }: Props) {
  const { data: who } = useQuery(whoami);
  const permission = allowed(who, need);
  const why = !permission.may ? permission.why : unless || undefined;
  if (why) {
    return (
      <Tooltip label={why}>
        <Button {...rest} data-disabled aria-disabled title={why} onClick={(event) => event.preventDefault()}>
          {children}
        </Button>
      </Tooltip>
    );
  }
  if (to) {
    return (
      <Button {...rest} component={Link} to={to}>
        {children}
      </Button>
    );
  }
  return (
    <Button {...rest} onClick={onClick}>
      {children}
    </Button>
  );
}
