import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const tower = process.env.TOWER_API ?? "http://127.0.0.1:8080";
// For development alone: requests through the proxy carry this token, so that no session is needed.
const token = process.env.TOWER_TOKEN;

export default defineConfig({
  plugins: [react()],
  // Tower puts a fresh nonce in its place, with each answer.
  html: { cspNonce: "TOWER_NONCE" },
  build: {
    // Everything is a file of its own: the content security policy allows no data: URLs for scripts and styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Those that know light-dark().
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    chunkSizeWarningLimit: 700,
  },
  server: {
    proxy: {
      "/api": { target: tower, headers: token ? { Authorization: `Bearer ${token}` } : {} },
    },
  },
  test: { include: ["test/**/*.test.ts"] },
});
