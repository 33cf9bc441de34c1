import { defineConfig } from "@playwright/test";

/** The page as people see it: in the system's Chromium, on a real Tower with real Beacons and Envoys. */
export default defineConfig({
  testDir: "e2e",
  // One fleet is enough for this machine, and a test that cuts it off must not do so to others.
  workers: 1,
  fullyParallel: false,
  retries: 0,
  forbidOnly: true,
  timeout: 90_000,
  expect: { timeout: 20_000 },
  reporter: [["list"]],
  outputDir: "node_modules/.playwright",
  use: {
    browserName: "chromium",
    viewport: { width: 1440, height: 900 },
    locale: "en-GB",
    timezoneId: "Europe/Berlin",
    actionTimeout: 15_000,
    screenshot: "only-on-failure",
    trace: "retain-on-failure",
    launchOptions: {
      executablePath: process.env.TOWER_CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
    },
  },
});
