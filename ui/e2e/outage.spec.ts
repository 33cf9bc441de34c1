import { document } from "./stand";
import { expect, live, requestTime, test } from "./test";

test.afterEach(async ({ stand }) => {
  await stand.order({ do: "proxy", fault: "pass" });
  await stand.order({ do: "start_tower" });
});

test("a stream that is cut says so, and misses nothing", async ({ stand, signedIn }) => {
  const page = await signedIn(await stand.token("stella", ["viewer"]));
  await page.goto("/activity");
  await live(page);
  await stand.ask("POST", "/services/tide/versions?reason=before", document("tide", "1s"));
  await expect(page.getByText("“before”").first()).toBeVisible();
  await stand.order({ do: "proxy", fault: "cut" });
  await expect(page.getByText("Stale: the live updates are cut")).toBeVisible();
  await expect(page.getByRole("button", { name: "Live updates: Cut" })).toBeVisible();
  for (const second of [2, 3, 4]) {
    await stand.ask(
      "POST",
      `/services/tide/versions?reason=meanwhile%20${second}`,
      document("tide", `${second}s`),
    );
  }
  await stand.order({ do: "proxy", fault: "pass" });
  await live(page);
  await expect(page.getByText("Stale: the live updates are cut")).toBeHidden();
  for (const second of [2, 3, 4]) await expect(page.getByText(`“meanwhile ${second}”`)).toHaveCount(1);
});

test("a connection that died without an end is noticed", async ({ stand, signedIn }) => {
  const page = await signedIn(await stand.token("fred", ["viewer"]));
  await live(page);
  await stand.order({ do: "proxy", fault: "freeze" });
  await expect(page.getByText("Stale: the live updates are cut")).toBeVisible({ timeout: 45_000 });
  await stand.order({ do: "proxy", fault: "pass" });
  await live(page);
});

test("Tower restarts under the page: no one signs in again, and what they were writing is there", async ({
  stand,
  signedIn,
}) => {
  await stand.service("reef");
  const page = await signedIn(await stand.token("rita", ["owner"], ["reef"]));
  await page.goto("/services/reef/callers");
  await live(page);
  const request = requestTime(page);
  await request.fill("6s");
  await stand.order({ do: "kill_tower" });
  await expect(page.getByText("Stale: the live updates are cut")).toBeVisible();
  await stand.order({ do: "start_tower" });
  await live(page);
  await expect(page.getByText("Stale: the live updates are cut")).toBeHidden();
  await expect(request).toHaveValue("6s");
  await page.getByRole("link", { name: "Review the difference" }).click();
  await page.getByLabel("Reason").fill("after the restart");
  await page.getByRole("button", { name: "Upload as a version" }).click();
  await expect(page).toHaveURL(/versions\/2\/activate/);
});
