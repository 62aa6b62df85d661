// Two servers on one database, each with a browser of its own and no request between them: what is typed at
// one appears at the other (issue: the change feed). The verify phase "shared-e2e" starts them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Harness, patience } from "./harness.mjs";

/** @type {Harness} */
let a;
/** @type {Harness} */
let b;

before(async () => {
  assert.ok(process.env["HUBMESH_URL_B"], "HUBMESH_URL_B names no second server");
  [a, b] = await Promise.all([Harness.start(), Harness.start("_B")]);
  await a.create("shared", { nodeType: "Space", name: "Shared space" });
  await a.document("shared/page", "Page", "# Page\n\nFirst words.\n");
});
after(async () => {
  await Promise.all([a?.stop(), b?.stop()]);
});

/** @param {import("playwright-core").Locator} locator @param {string} text */
const hasText = (locator, text) => locator.filter({ hasText: text }).first().waitFor({ timeout: patience });

test("what is typed at one server appears at the other without a reload, and the other way round", async () => {
  const editor = await a.open("/shared/page?tab=edit");
  const reader = await b.open("/shared/page");
  await hasText(reader.locator(".document"), "First words.");
  await editor.getByLabel("Text Markdown").fill("# Page\n\nFirst words.\n\nAnd *more* of them.\n");
  await hasText(reader.locator(".document em"), "more");
  await reader.goto("/shared/page?tab=edit");
  await reader.getByLabel("Name", { exact: true }).fill("Named at the other");
  await editor.getByRole("heading", { level: 1, name: "Named at the other" }).waitFor();
  await editor.getByRole("treeitem", { name: "Named at the other", exact: true }).waitFor();
  await editor.context().close();
  await reader.context().close();
});

test("two who type at two servers at once both keep what they wrote", async () => {
  await a.document("shared/both", "Both", "# Both\n\nOne.\n\nTwo.\n");
  const [left, right] = [await a.open("/shared/both?tab=edit"), await b.open("/shared/both?tab=edit")];
  await left.getByLabel("Description").fill("written at the first");
  await right.getByLabel("Name", { exact: true }).fill("Written at the second");
  await left.getByRole("heading", { level: 1, name: "Written at the second" }).waitFor();
  await right.waitForFunction(() => [...document.querySelectorAll("input, textarea")].some((e) => /** @type {HTMLInputElement} */ (e).value === "written at the first"), undefined, { timeout: patience });
  await left.context().close();
  await right.context().close();
});
