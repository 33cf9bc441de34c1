import { Anchor, Badge, Button, createTheme, Menu, Paper, Table, Tooltip } from "@mantine/core";

/** Dense, with few colours: colour is for states. */
export const theme = createTheme({
  primaryColor: "indigo",
  primaryShade: 7,
  autoContrast: true,
  defaultRadius: "sm",
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
  fontSizes: { xs: "0.75rem", sm: "0.8125rem", md: "0.875rem", lg: "1rem", xl: "1.125rem" },
  headings: {
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "1.25rem", lineHeight: "1.3" },
      h2: { fontSize: "1rem", lineHeight: "1.4" },
      h3: { fontSize: "0.875rem", lineHeight: "1.4" },
    },
  },
  components: {
    Anchor: Anchor.extend({ defaultProps: { inherit: true } }),
    Badge: Badge.extend({ defaultProps: { variant: "light", tt: "none", fw: 500, radius: "sm" } }),
    Button: Button.extend({ defaultProps: { size: "xs" } }),
    Menu: Menu.extend({ defaultProps: { withInitialFocusPlaceholder: false } }),
    Paper: Paper.extend({ defaultProps: { withBorder: true, p: "md" } }),
    Table: Table.extend({ defaultProps: { verticalSpacing: 6, horizontalSpacing: "sm" } }),
    Tooltip: Tooltip.extend({
      defaultProps: {
        multiline: true,
        maw: 420,
        openDelay: 200,
        events: { hover: true, focus: true, touch: true },
      },
    }),
  },
});
