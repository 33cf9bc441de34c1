import { expect, live, signIn, test } from "./test";

test("one signs in with a token, which stays nowhere in the browser", async ({
  stand,
  browser,
  signedIn,
}) => {
  const token = await stand.token("visitor", ["viewer"]);
  const page = await signedIn(token);
  await live(page);
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ name: "tower_session", httpOnly: true, sameSite: "Strict" });
  const kept = await page.evaluate(() =>
    JSON.stringify([localStorage, sessionStorage, document.cookie, location.href]),
  );
  expect(kept).not.toContain(token.split("_")[2]);
  expect(cookie?.value).not.toContain(token.split("_")[2]);

  // Another tab is signed in, too; after signing out none is.
  const other = await page.context().newPage();
  await other.goto("/services");
  await expect(other.getByRole("heading", { name: "Services" })).toBeVisible();
  await other.getByRole("button", { name: /visitor/ }).click();
  await other.getByRole("menuitem", { name: "Sign out" }).click();
  await expect(other.getByLabel("Token")).toBeVisible();

  const wrong = await (await browser.newContext({ baseURL: stand.page })).newPage();
  await wrong.goto("/services/nothing/versions");
  await wrong.getByLabel("Token").fill(`${token.slice(0, -8)}00000000`);
  await wrong.getByRole("button", { name: "Sign in" }).click();
  await expect(wrong.getByText("there is no such token")).toBeVisible();
  await wrong.context().close();
});

test("a session ends with its token, and the page says so without losing what is on it", async ({
  stand,
  signedIn,
}) => {
  const token = await stand.token("brief", ["viewer"]);
  const page = await signedIn(token);
  await page.goto("/activity");
  await live(page);
  await stand.ask("DELETE", `/tokens/${token.split("_")[1]}?reason=enough`);
  await expect(page.getByText("Your session has ended")).toBeVisible();
  await signIn(page, await stand.token("again", ["viewer"]));
  await expect(page).toHaveURL(/\/activity$/);
  await expect(page.getByText("Your session has ended")).toBeHidden();
  await live(page);
});

test("another site changes nothing with somebody's session", async ({ stand, signedIn }) => {
  const page = await signedIn(stand.admin);
  const asked = await page.evaluate(async () => {
    const send = (headers: Record<string, string>) =>
      fetch("/api/v1/tokens", {
        method: "POST",
        headers: { "Content-Type": "application/json", ...headers },
        body: JSON.stringify({ name: "thief", roles: ["admin"] }),
      }).then(async (response) => [response.status, (await response.json()).field]);
    return [await send({}), await send({ "X-Tower-CSRF": "0".repeat(64) })];
  });
  expect(asked).toEqual([
    [403, "X-Tower-CSRF"],
    [403, "X-Tower-CSRF"],
  ]);
});
