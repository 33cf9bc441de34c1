import { type Stand, until } from "./stand";
import { expect, field, live, test } from "./test";

/** A service whose next activation an Envoy refuses, for a patch of the platform: it has no such transport socket. */
async function unacceptable(stand: Stand, service: string) {
  await stand.service(service);
  const patch = `apiVersion: tower.mesh/v1
kind: MeshService
metadata: {name: ${service}}
spec:
  patches:
  - target: {kind: Cluster, name: ${service}}
    merge:
      transportSocket:
        name: nobody-has-this
        typedConfig: {'@type': type.googleapis.com/google.protobuf.StringValue, value: x}
`;
  const paul = await stand.token("paul", ["platform"]);
  await stand.ask("PUT", `/platform/${service}?reason=faster`, patch, paul);
}

test("an owner finds a service, edits it, sees what that does, activates it, watches it land, and takes it back", async ({
  stand,
  signedIn,
}) => {
  await stand.service("shop");
  await until("alpha answers", async () => (await stand.answers("shop.mesh")).join() === "alpha");
  const page = await signedIn(await stand.token("olga", ["owner"], ["shop"]));

  // Find.
  await page.keyboard.press("Control+k");
  await page
    .getByRole("searchbox")
    .or(page.getByPlaceholder("A service, a host, a page …"))
    .first()
    .fill("sho");
  await page.getByRole("dialog").getByText("owner shop-team").click();
  await expect(page).toHaveURL(/\/services\/shop$/);

  // Edit: the form and the YAML are one text.
  await page.getByRole("link", { name: "Edit" }).click();
  await field(page, "spec.callers.routes[0].backendRefs[0].weight").fill("0");
  await field(page, "spec.callers.routes[0].backendRefs[1].weight").fill("100");
  const yaml = page.getByRole("region", { name: "YAML" });
  await expect(yaml).toContainText("{subset: stable, weight: 0}");
  await expect(yaml).toContainText("# How others call shop.");

  // Difference and preview of the draft.
  await page.getByRole("link", { name: "Review the difference" }).click();
  const differences = page.getByRole("table", { name: "Differences" });
  await expect(differences).toContainText("spec.callers.routes[default].backendRefs");
  await expect(page.getByText("What it does to connections")).toBeVisible();
  await expect(page.getByRole("region", { name: "Affected hosts" })).toContainText("3 hosts are affected");
  await page.getByText("By text").click();
  await expect(page.locator(".cm-deletedLine, .cm-deletedChunk, .cm-changedLine").first()).toBeVisible();
  await page.getByRole("textbox", { name: "Reason" }).fill("beta is ready");
  await page.getByRole("button", { name: "Upload as a version" }).click();

  // Activate on the hosts that are named, step by step.
  await expect(page).toHaveURL(/\/services\/shop\/versions\/2\/activate/);
  const affected = page.getByRole("region", { name: "Affected hosts" });
  for (const host of ["host-1", "host-2", "host-3"]) await expect(affected).toContainText(host);
  await page.getByRole("textbox", { name: "Reason" }).fill("beta for all");
  await page.getByRole("button", { name: "Activate on 3 hosts" }).click();

  // Watch.
  await expect(page).toHaveURL(/\/activations\//);
  await live(page);
  const steps = page.getByRole("region", { name: "Steps" });
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Succeeded", { timeout: 60_000 });
  await expect(steps.getByRole("img", { name: /Of 3 hosts: 3 accepted/ })).toBeVisible();
  await until("beta answers", async () => (await stand.answers("shop.mesh")).join() === "beta");

  // Take it back.
  await page.getByRole("button", { name: "Roll back …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("not yet, after all");
  await dialog.getByRole("button", { name: "Roll back" }).click();
  await expect(page.getByText("roll back", { exact: true })).toBeVisible();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Succeeded", { timeout: 60_000 });
  await until("alpha answers again", async () => (await stand.answers("shop.mesh")).join() === "alpha");

  // Everybody can read who did that, and why.
  await page.goto("/activity?service=shop&author=olga");
  for (const reason of ["beta is ready", "beta for all", "not yet, after all"]) {
    await expect(page.getByText(`“${reason}”`).first()).toBeVisible();
  }
});

test("what an Envoy refuses is shown beside its error, with the field, and who wrote it", async ({
  stand,
  signedIn,
}) => {
  await unacceptable(stand, "pay");
  const page = await signedIn(await stand.token("olaf", ["owner"], ["pay"]));
  await page.goto("/services/pay/versions/1/activate");
  await page.getByRole("textbox", { name: "Reason" }).fill("with the platform's patch");
  await page.getByRole("button", { name: "Activate on 3 hosts" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Rejected", { timeout: 60_000 });

  const refused = page.getByRole("region", { name: /refused/ });
  await expect(refused).toContainText("nobody-has-this");
  await expect(refused.getByText("The resource that it refused")).toBeVisible();
  await expect(refused.getByRole("region", { name: "clusters pay" })).toContainText("name: nobody-has-this");
  const change = page.getByRole("region", { name: "What it would have changed" });
  await expect(change.getByRole("row", { name: /patches/ })).toContainText("paul");
  // Traffic went on, and the host says the same.
  expect(await stand.answers("pay.mesh")).toEqual(["alpha"]);
  await refused.getByRole("link", { name: /^host-/ }).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText(/host-\d/);
});

test("somebody who has only the page finds out which hosts refused the last change, and why", async ({
  stand,
  signedIn,
}) => {
  await unacceptable(stand, "gift");
  await stand.ask("POST", "/services/gift/activations", { version: 1, reason: "a new season" });
  const page = await signedIn(await stand.token("newcomer", ["viewer"]));
  const last = page.getByRole("region", { name: "How the last changes ended" });
  // Why is there already; all of it is behind the link.
  await expect(last).toContainText(/host-\d refused gift.*nobody-has-this/);
  await last.getByRole("link", { name: /^gift/ }).first().click();
  await expect(page.getByText("nobody-has-this").first()).toBeVisible();
  await expect(
    page.getByRole("region", { name: /refused/ }).getByRole("link", { name: /^host-/ }),
  ).toBeVisible();
  // They may look, and are told why they may not do more.
  await expect(page.getByRole("button", { name: "Roll back …" })).toHaveAttribute("title", /owner/i);
});
