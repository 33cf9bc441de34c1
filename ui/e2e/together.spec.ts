import { document, until } from "./stand";
import { expect, live, requestTime, test } from "./test";

test("of two people who edit at once, the second is told what the first did, and loses nothing", async ({
  stand,
  signedIn,
}) => {
  await stand.service("cart");
  const [anna, bert] = [
    await signedIn(await stand.token("anna", ["owner"], ["cart"])),
    await signedIn(await stand.token("bert", ["owner"], ["cart"])),
  ];
  for (const page of [anna, bert]) {
    await page.goto("/services/cart/callers");
    await live(page);
  }
  await requestTime(anna).fill("3s");
  await requestTime(bert).fill("7s");
  await bert.getByRole("link", { name: "Review the difference" }).click();
  await bert.getByLabel("Reason").fill("slow shelves");
  await bert.getByRole("button", { name: "Upload as a version" }).click();
  await expect(bert).toHaveURL(/versions\/2\/activate/);

  await expect(anna.getByText("Somebody uploaded cart@2 while you were editing.")).toBeVisible();
  await expect(requestTime(anna)).toHaveValue("3s");
  await anna.getByRole("link", { name: "Review the difference" }).click();
  const upload = anna.getByRole("button", { name: "Upload as a version" });
  await expect(upload).toHaveAttribute("aria-disabled", "true");
  await anna.getByRole("button", { name: "I have seen it; keep mine" }).click();
  await upload.click();
  await expect(anna).toHaveURL(/versions\/3\/activate/);
  expect((await stand.ask("GET", "/services/cart/versions/3")).author).toBe("anna");
});

test("a draft that was overtaken unseen is refused by Tower, and the page says by what", async ({
  stand,
  signedIn,
}) => {
  await stand.service("desk");
  const page = await signedIn(await stand.token("dora", ["owner"], ["desk"]));
  await page.goto("/services/desk/callers");
  await live(page);
  // What others do does not reach this page any more.
  await page.getByRole("button", { name: "Live updates: Live" }).click();
  await page.route("**/api/v1/services/desk", (route) => route.abort());
  await requestTime(page).fill("4s");
  await stand.ask("POST", "/services/desk/versions?reason=behind%20your%20back", document("desk", "9s"));
  await page.getByRole("link", { name: "Review the difference" }).click();
  await page.getByRole("button", { name: "Upload as a version" }).click();
  const alert = page.getByRole("alert").filter({ hasText: "stale" });
  await expect(alert).toContainText("“behind your back”");
  await expect(page.getByText("Draft", { exact: true })).toBeVisible();
});

test("leaving a draft behind is asked about", async ({ stand, signedIn }) => {
  await stand.service("bell");
  const page = await signedIn(await stand.token("bea", ["owner"], ["bell"]));
  await page.goto("/services/bell/callers");
  const field = requestTime(page);
  await field.fill("5s");
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Activity" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stay" }).click();
  await expect(field).toHaveValue("5s");
});

test("what the guard holds is released with a reason, by those who may", async ({ stand, signedIn }) => {
  const endpoints = (count: number) =>
    Array.from({ length: count }, (_, place) => ({ address: `127.0.0.1:${20_000 + place}` }));
  await stand.order({ do: "register", service: "bulk", endpoints: endpoints(12) });
  await until("all are known", async () => (await stand.ask("GET", "/services/bulk")).endpoints === 12);
  await stand.order({ do: "register", service: "bulk", endpoints: endpoints(2) });

  const owner = await signedIn(await stand.token("oona", ["owner"], ["bulk"]));
  await owner.goto("/sources");
  await expect(owner.getByText("The guard is at work")).toBeVisible();
  await expect(owner.getByRole("button", { name: "Release …" })).toHaveAttribute("title", /platform/);

  const page = await signedIn(await stand.token("petra", ["platform"]));
  await page.goto("/sources");
  await expect(page.getByText("10 endpoints of bulk are held")).toBeVisible();
  await page.getByRole("button", { name: "Release …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("the rack is gone for good");
  await dialog.getByRole("button", { name: "Release", exact: true }).click();
  await expect(page.getByText("The guard is at work")).toBeHidden();
  await until("they are gone", async () => (await stand.ask("GET", "/services/bulk")).endpoints === 2);
  await page.goto("/activity?author=petra");
  await expect(page.getByText("“the rack is gone for good”").first()).toBeVisible();
});
