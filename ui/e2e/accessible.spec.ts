import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { document, type Stand } from "./stand";
import { expect, settled, test } from "./test";

/** Every page, with something on it. */
const PAGES: [string, string][] = [
  ["fleet", "/"],
  ["host", "/hosts/host-1"],
  ["services", "/services"],
  ["service", "/services/lamp"],
  ["callers", "/services/lamp/callers"],
  ["inbound", "/services/lamp/inbound"],
  ["outbound", "/services/lamp/outbound"],
  ["review", "/services/lamp/review"],
  ["traffic", "/services/lamp/traffic"],
  ["endpoints", "/services/lamp/endpoints"],
  ["versions", "/services/lamp/versions"],
  ["version", "/services/lamp/versions/2"],
  ["activate", "/services/lamp/versions/2/activate"],
  ["difference", "/services/lamp/diff?from=1&to=2"],
  ["difference by text", "/services/lamp/diff?from=1&to=2&view=text"],
  ["activity", "/activity"],
  ["entry", "/activity/2"],
  ["sources", "/sources"],
  ["nothing", "/nothing/here"],
];

/** A service with two versions, of which the first is active. */
async function prepare(stand: Stand) {
  if ((await stand.ask("GET", "/services?search=lamp")).services.length > 0) return;
  await stand.service("lamp");
  await stand.ask("POST", "/services/lamp/versions?reason=slower", document("lamp", "2s"));
}

async function check(page: Page) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const serious = violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" | ")}`);
  expect(serious).toEqual([]);
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`axe finds nothing serious on any page, ${colorScheme}`, async ({ stand, signedIn }) => {
    test.setTimeout(240_000);
    await prepare(stand);
    const page = await signedIn(stand.admin);
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const { activations } = await stand.ask("GET", "/services/lamp/activations");
    for (const [name, path] of [...PAGES, ["activation", `/activations/${activations[0].id}`]] as const) {
      await test.step(name, async () => {
        await page.goto(path);
        await expect(page.locator("html")).toHaveAttribute("data-mantine-color-scheme", colorScheme);
        await settled(page);
        await check(page);
      });
    }
    await test.step("dialogs and menus", async () => {
      await page.goto("/services/lamp");
      await page.getByRole("button", { name: "Roll back …" }).click();
      const dialog = page.getByRole("dialog");
      await expect(dialog.getByLabel("Reason")).toBeFocused();
      await check(page);
      await page.keyboard.press("Escape");
      await expect(dialog).toBeHidden();
      await page.keyboard.press("Control+k");
      await expect(page.getByRole("dialog")).toBeVisible();
      await check(page);
      await page.keyboard.press("Escape");
      await expect(dialog).toBeHidden();
      await page.getByRole("button", { name: /^admin/ }).click();
      await expect(page.getByRole("menu")).toBeVisible();
      await check(page);
    });
    await test.step("sign-in", async () => {
      await page.context().clearCookies();
      await page.goto("/");
      await expect(page.getByLabel("Token")).toBeVisible();
      await check(page);
    });
  });
}
