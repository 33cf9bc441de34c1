import { test as base, expect, type Locator, type Page } from "@playwright/test";
import { Stand } from "./stand";

export { expect };

interface PerTest {
  /** A new browser, signed in with this token. */
  signedIn: (token: string) => Promise<Page>;
}

/** With a fleet, and with pages that break neither the content security policy nor themselves. */
export const test = base.extend<PerTest, { stand: Stand }>({
  stand: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the fixtures that are needed from it
    async ({}, use) => {
      const stand = await Stand.start();
      await use(stand);
      await stand.end();
    },
    { scope: "worker", timeout: 120_000 },
  ],
  signedIn: async ({ browser, stand }, use) => {
    const faults: string[] = [];
    const contexts: { close: () => Promise<void> }[] = [];
    await use(async (token) => {
      const context = await browser.newContext({ baseURL: stand.page });
      contexts.push(context);
      const page = await context.newPage();
      watch(page, faults);
      await page.goto("/");
      await signIn(page, token);
      return page;
    });
    for (const context of contexts) await context.close();
    expect(faults, "what the browser complained about").toEqual([]);
  },
});

/** Notes what no page may do, whatever else happens. */
export function watch(page: Page, faults: string[]) {
  page.on("pageerror", (error) => faults.push(`thrown: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && /Content Security Policy|React|Warning:/.test(message.text())) {
      faults.push(message.text());
    }
  });
}

export async function signIn(page: Page, token: string) {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("navigation", { name: "Main" })).toBeVisible();
}

/** The page follows what happens. */
export async function live(page: Page) {
  await expect(page.getByRole("button", { name: "Live updates: Live" })).toBeVisible();
}

/** A field with one value in the form of a document, by where it is. */
export function field(page: Page, path: string): Locator {
  const [, frame, name] = /^(.*)\.(\w+)$/.exec(path) as unknown as [string, string, string];
  return page.getByRole("group", { name: frame, exact: true }).getByRole("textbox", { name, exact: true });
}

/** The time of requests in the documents of these tests. */
export const requestTime = (page: Page) => field(page, "spec.callers.routes[0].timeouts.request");

/** Nothing of the page is on its way any more. */
export async function settled(page: Page) {
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.getByText("Asking Tower …")).toHaveCount(0);
}
