import { defaultClientConditions, defaultServerConditions } from "vite";
import { defineConfig } from "vitest/config";

// Assets live under a name that no space can have, so that a node's path never meets a file.
const assets = "_app";
const server = process.env["HUBMESH_URL"] ?? "http://127.0.0.1:8090";
const browsers = ["chrome125", "firefox125", "safari18"];

export default defineConfig({
  resolve: { conditions: ["hubmesh-source", ...defaultClientConditions] },
  ssr: { resolve: { conditions: ["hubmesh-source", ...defaultServerConditions] } }, // for the tests
  build: {
    assetsDir: assets,
    assetsInlineLimit: 0,
    target: browsers,
    cssTarget: browsers,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: Object.fromEntries(["/api", "/static", "/login", "/logout"].map((route) => [route, { target: server, changeOrigin: false }])),
  },
  test: {
    include: ["test/**/*.test.{ts,tsx}"],
  },
});
