// End-to-end tests of the page in Chromium. See harness.mjs for what they take from the environment.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { makeSpace, png } from "./fixtures.mjs";
import { Harness, patience } from "./harness.mjs";

/** @type {Harness} */
let mesh;
let space = "";

before(async () => {
  mesh = await Harness.start();
  space = await makeSpace(mesh);
});
after(async () => {
  await mesh?.api("DELETE", `/api/nodes/${space}?recursive=true`).catch(() => undefined);
  await mesh?.stop();
});

/** The tree, and an item of it by its name. @param {import("playwright-core").Page} page @param {string} name */
const item = (page, name) => page.getByRole("treeitem", { name, exact: true });
/** @param {import("playwright-core").Page} page */
const saved = (page) => page.locator(".save-status.saved").waitFor();
/** @param {import("playwright-core").Page} page */
const isLive = (page) => page.locator(".connection.connected").waitFor();

/** Waits until a locator has a text. @param {import("playwright-core").Locator} locator @param {string | RegExp} text */
async function hasText(locator, text) {
  await locator.filter({ hasText: text }).first().waitFor({ timeout: patience });
}

/** Waits until a function gives true, asked on each frame of the page. @param {import("playwright-core").Page} page @param {(argument: any) => boolean} condition @param {any} [argument] */
const until = (page, condition, argument) => page.waitForFunction(condition, argument, { timeout: patience });

test("somebody who is not signed in is told how to sign in", async () => {
  const page = await mesh.open("/", { anonymous: true });
  await page.getByRole("heading", { name: "Sign in to hubmesh" }).waitFor();
  await hasText(page.locator("main"), "hubmesh token create");
  await mesh.picture(page, "sign-in");
  await page.context().close();
});

test("the tree shows the spaces and opens one", async () => {
  const page = await mesh.open("/");
  await item(page, "Launch team").waitFor();
  await mesh.picture(page, "home");
  assert.equal(await item(page, "Launch team").getAttribute("aria-expanded"), "false");
  await item(page, "Launch team").locator("button.twisty").click();
  await item(page, "Launch plan").waitFor();
  assert.equal(await item(page, "Launch team").getAttribute("aria-expanded"), "true");
  assert.equal(await item(page, "Launch plan").getAttribute("aria-level"), "2");
  await page.context().close();
});

test("a document shows its table, code and image, and its relative links stay in the page", async () => {
  const page = await mesh.open(`/${space}/plan`);
  await page.getByRole("heading", { name: "Milestones" }).waitFor();
  await hasText(page.locator(".document td"), "Private beta");
  await page.locator(".document pre .hl-keyword", { hasText: "func" }).first().waitFor();
  await until(page, () => {
    const image = /** @type {HTMLImageElement | null} */ (document.querySelector(".document img"));
    image?.scrollIntoView({ block: "nearest" });
    return image !== null && image.complete && image.naturalWidth === 320;
  });
  await page.evaluate(() => {
    /** @type {any} */ (window).stayed = true;
    scrollTo(0, 0);
  });
  await mesh.picture(page, "document");
  await page.locator(".document a", { hasText: "budget" }).click();
  await page.getByRole("heading", { level: 1, name: "Budget" }).first().waitFor();
  assert.equal(new URL(page.url()).pathname, `/${space}/budget`);
  await page.goBack();
  await page.locator(".document a", { hasText: "below" }).click();
  await hasText(page.locator(".document"), "What lies below");
  assert.equal(new URL(page.url()).pathname, `/${space}/plan/details`);
  assert.equal(await page.evaluate(() => /** @type {any} */ (window).stayed), true);
  await page.context().close();
});

test("a node without a document shows its content as a table", async () => {
  const page = await mesh.open(`/${space}/${encodeURIComponent("pâturage")}`);
  await hasText(page.locator(".member dd"), "Annecy");
  await hasText(page.locator(".data th"), "phone");
  await hasText(page.locator(".data td"), "38.76.98.58");
  await mesh.picture(page, "data");
  await page.getByRole("tab", { name: "Data" }).click();
  await hasText(page.locator("pre .hl-name"), "\"company\"");
  await page.context().close();
});

test("an edit in one tab appears in another without a reload, and saves by itself", async () => {
  await mesh.document(`${space}/shared`, "Shared", "# Shared\n\nFirst words.\n");
  const [editor, reader] = [await mesh.open(`/${space}/shared?tab=edit`), await mesh.open(`/${space}/shared`)];
  await hasText(reader.locator(".document"), "First words.");
  await editor.getByLabel("Text Markdown").fill("# Shared\n\nFirst words.\n\nAnd *more* of them.\n");
  await hasText(editor.locator(".preview em"), "more");
  await saved(editor);
  await hasText(reader.locator(".document em"), "more");
  await editor.getByLabel("Name", { exact: true }).fill("Shared by two");
  await reader.getByRole("heading", { level: 1, name: "Shared by two" }).waitFor();
  await item(reader, "Shared by two").waitFor();
  await mesh.picture(editor, "edit");
  await editor.context().close();
  await reader.context().close();
});

test("two people who type in the same text at once both keep what they wrote", async () => {
  await mesh.document(`${space}/both`, "Both", "top\n\nbottom\n");
  const pages = [await mesh.open(`/${space}/both?tab=edit`), await mesh.open(`/${space}/both?tab=edit`)];
  const [one, two] = pages.map((page) => page.getByLabel("Text Markdown"));
  if (one === undefined || two === undefined) throw new Error("unreachable");
  for (const page of pages) await isLive(page);
  await one.focus();
  await pages[0]?.keyboard.press("Control+Home");
  await two.focus();
  await pages[1]?.keyboard.press("Control+End");
  for (let n = 0; n < 6; n++) {
    await one.pressSequentially(`a${n} `, { delay: 60 });
    await two.pressSequentially(`z${n} `, { delay: 60 });
  }
  const all = [0, 1, 2, 3, 4, 5].flatMap((n) => [`a${n}`, `z${n}`]);
  for (const page of pages) {
    await until(page, (words) => {
      const text = /** @type {HTMLTextAreaElement | null} */ (document.querySelector("textarea"))?.value ?? "";
      return words.every((/** @type {string} */ word) => text.includes(word));
    }, all);
    await saved(page);
  }
  assert.equal(await one.inputValue(), await two.inputValue());
  assert.equal(await one.inputValue(), "a0 a1 a2 a3 a4 a5 top\n\nbottom\nz0 z1 z2 z3 z4 z5 ");
  for (const page of pages) await page.context().close();
});

test("an edit by the API appears live, in the document, the header and the tree", async () => {
  await mesh.document(`${space}/remote`, "Remote", "# Remote\n\nBefore.\n");
  const page = await mesh.open(`/${space}/remote`);
  await hasText(page.locator(".document"), "Before.");
  await isLive(page);
  await mesh.api("PATCH", `/api/nodes/${space}/remote`, { name: "Remote, renamed", content: { markdown: "# Remote\n\nAfter.\n" } });
  await hasText(page.locator(".document"), "After.");
  await page.getByRole("heading", { level: 1, name: "Remote, renamed" }).waitFor();
  await item(page, "Remote, renamed").waitFor();
  await mesh.api("DELETE", `/api/nodes/${space}/remote`);
  await hasText(page.locator(".banner"), "was deleted");
  await item(page, "Remote, renamed").waitFor({ state: "detached" });
  await page.context().close();
});

test("a node is created and deleted, and one with others below asks again", async () => {
  const page = await mesh.open(`/${space}`);
  await page.getByRole("button", { name: "New", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Press kit");
  assert.equal(await dialog.getByLabel("Id").inputValue(), "Press-kit");
  await dialog.getByLabel("Text (Markdown)").fill("# Press kit\n\nAll of it.\n");
  await mesh.picture(page, "create");
  await dialog.getByRole("button", { name: "Create" }).click();
  await hasText(page.locator(".document"), "All of it.");
  await item(page, "Press kit").waitFor();
  await mesh.document(`${space}/Press-kit/photo`, "Photo", "One.\n");
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Delete…" }).click();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await hasText(dialog, "There are nodes below");
  await mesh.picture(page, "delete");
  await dialog.getByRole("button", { name: "Delete all of it" }).click();
  await hasText(page.locator(".notice"), "Deleted Press kit and 1 below it");
  await item(page, "Press kit").waitFor({ state: "detached" });
  await page.context().close();
});

test("content that is not JSON is not saved, and says so", async () => {
  await mesh.create(`${space}/numbers`, { name: "Numbers", content: { a: 1 } });
  const page = await mesh.open(`/${space}/numbers?tab=edit`);
  const text = page.getByLabel("Content JSON");
  await text.fill("{ \"a\": ");
  await hasText(page.locator(".hint.wrong"), "not valid JSON");
  await text.fill("{ \"a\": null, \"b\": [1] }");
  await saved(page);
  await until(page, () => document.querySelector(".save-status.saved") !== null);
  assert.deepEqual((await mesh.api("GET", `/api/nodes/${space}/numbers`)).content, { a: null, b: [1] });
  await page.context().close();
});

test("search finds by name, and the keyboard opens the hit", async () => {
  const page = await mesh.open("/");
  await item(page, "Launch team").waitFor();
  await page.keyboard.press("/");
  const box = page.getByRole("combobox", { name: "Search by name" });
  await box.pressSequentially("launch pl");
  await page.getByRole("option", { name: /Launch plan/ }).first().waitFor();
  await mesh.picture(page, "search");
  await box.fill("pâturage");
  await page.getByRole("option", { name: /Gai pâturage/ }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Gai pâturage" }).waitFor();
  await box.fill("xqzv wkjp");
  await hasText(page.locator(".search-note"), "Nothing found");
  await page.context().close();
});

test("odd content is shown, however deep, and leads nowhere", async () => {
  await mesh.create(`${space}/odd`, { content: { text: "/\\[", deep: nested(190), list: nested(150, true), ok: `/${space}/budget` } });
  const page = await mesh.open(`/${space}/odd`);
  await page.getByText("/\\[").waitFor();
  assert.equal(await page.locator(".data a").count(), 1);
  for (let level = 0; level < 12; level++) await page.locator(".data details:not([open]) > summary").first().click();
  await mesh.picture(page, "odd");
  await page.getByRole("tab", { name: "Edit" }).waitFor();
  await page.context().close();
});

/**
 * An object, or a list, in an object, and so on.
 * @param {number} levels
 * @param {boolean} list
 */
function nested(levels, list = false) {
  /** @type {unknown} */
  let inner = "bottom";
  for (let level = 0; level < levels; level++) inner = list ? [inner, level] : { inner, level };
  return inner;
}

test("files are uploaded, listed, downloaded and deleted", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hubmesh-e2e-"));
  await writeFile(join(folder, "logo.png"), png(64, 64));
  const page = await mesh.open(`/${space}/budget?tab=files`);
  await hasText(page.locator(".empty"), "No files here");
  await page.getByLabel("Files to upload").setInputFiles(join(folder, "logo.png"));
  await page.getByRole("link", { name: "logo.png", exact: true }).waitFor();
  await mesh.picture(page, "files");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download logo.png" }).click()]);
  assert.deepEqual(await readFile(await download.path()), await readFile(join(folder, "logo.png")));
  await page.getByRole("button", { name: "Delete logo.png" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await hasText(page.locator(".empty"), "No files here");
  await rm(folder, { recursive: true });
  await page.context().close();
});

test("versions are listed, compared and restored", async () => {
  await mesh.document(`${space}/history`, "History", "# History\n\nOne.\n\nKept.\n");
  await mesh.api("PATCH", `/api/nodes/${space}/history`, { content: { markdown: "# History\n\nTwo.\n\nKept.\n" } });
  const page = await mesh.open(`/${space}/history`);
  await page.getByRole("tab", { name: "Versions" }).click();
  await page.getByRole("link", { name: /^v1 / }).click();
  await hasText(page.locator(".change.removed"), "One.");
  await hasText(page.locator(".change.added"), "Two.");
  await mesh.picture(page, "versions");
  await page.getByRole("button", { name: "Restore…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
  await hasText(page.locator(".notice"), "Version 1 is back");
  assert.equal((await mesh.api("GET", `/api/nodes/${space}/history`)).content.markdown, "# History\n\nOne.\n\nKept.\n");
  await page.context().close();
});

test("a running activity shows with its progress and can be cancelled", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hubmesh-e2e-"));
  // Enough that it still runs when the button is pressed.
  for (let n = 0; n < 30_000; n++) writeFileSync(join(folder, `node-${n}.json`), `{"name":"Node ${n}","content":{"n":${n}}}`);
  const page = await mesh.open(`/${space}/plan`);
  await isLive(page);
  const { activity } = await mesh.api("POST", "/api/import", { source: folder, into: `${space}/imported`, content: "" });
  const strip = page.getByRole("region", { name: "Running activities" });
  await hasText(strip.locator(".activity-count"), / of /);
  await mesh.picture(page, "activity", { rules: false });
  await strip.getByRole("button", { name: "Cancel" }).first().click();
  await strip.waitFor({ state: "detached" });
  assert.equal((await mesh.api("GET", `/api/nodes/${activity}`)).content.status, "Cancelled");
  rmSync(folder, { recursive: true });
  await page.context().close();
});

test("everything can be done with the keyboard alone", async () => {
  await mesh.document(`${space}/keys`, "Keys", "# Keys\n\nPress them.\n");
  const page = await mesh.open(`/${space}`);
  await item(page, "Launch plan").waitFor();
  const active = () => page.evaluate(() => document.getElementById(document.activeElement?.getAttribute("aria-activedescendant") ?? "")?.getAttribute("aria-label"));
  await page.getByRole("tree").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("L");
  while ((await active()) !== "Launch team") await page.keyboard.press("L");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await item(page, "Launch team").getAttribute("aria-expanded"), "false");
  await page.keyboard.press("ArrowRight");
  await item(page, "Launch plan").waitFor();
  await page.keyboard.press("ArrowRight");
  while ((await active()) !== "Launch plan") await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  assert.equal(await item(page, "Launch plan").getAttribute("aria-expanded"), "true");
  await item(page, "Details").waitFor();
  await page.keyboard.press("ArrowRight");
  assert.equal(await active(), "Details");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await item(page, "Launch plan").getAttribute("aria-expanded"), "false");
  await page.keyboard.press("K");
  assert.equal(await active(), "Keys");
  await mesh.picture(page, "keyboard");
  await page.keyboard.press("Enter");
  await hasText(page.locator(".document"), "Press them.");
  await page.getByRole("tab", { name: "View" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.getByLabel("Text Markdown").focus();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("All of them.");
  await page.keyboard.press("Control+s");
  await saved(page);
  assert.match((await mesh.api("GET", `/api/nodes/${space}/keys`)).content.markdown, /All of them\.$/);
  await page.context().close();
});

test("on a phone the tree is a drawer and nothing is wider than the screen", async () => {
  const page = await mesh.open(`/${space}/plan`, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await page.getByRole("heading", { name: "Milestones" }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  await mesh.picture(page, "phone-document");
  await page.getByRole("button", { name: "Tree", exact: true }).tap();
  await item(page, "Budget").waitFor();
  await until(page, () => getComputedStyle(/** @type {Element} */ (document.querySelector("#side"))).transform === "none");
  await mesh.picture(page, "phone-tree");
  await item(page, "Budget").locator("a").tap();
  await hasText(page.locator(".document"), "Numbers.");
  await until(page, () => getComputedStyle(/** @type {Element} */ (document.querySelector("#side"))).visibility === "hidden");
  await page.getByRole("tab", { name: "Edit" }).tap();
  await page.getByLabel("Text Markdown").waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  await mesh.picture(page, "phone-edit");
  await page.context().close();
});

test("no word, however long, makes the page wider than the screen of a phone", async () => {
  const width = 360;
  const page = await mesh.open(`/${space}/wide`, { viewport: { width, height: 740 }, hasTouch: true, isMobile: true });
  // The screen's own width: innerWidth grows with a page that is too wide.
  const fits = async (/** @type {string} */ what) => assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, what);
  await page.locator(".document table").waitFor();
  await fits("the document");
  await mesh.picture(page, "phone-wide");
  for (const tab of await page.getByRole("tab").all()) {
    const name = await tab.textContent();
    await tab.tap();
    await page.locator(`[role="tab"][aria-selected="true"]`, { hasText: name ?? "" }).waitFor();
    await page.locator(".tab-panel > :not(.loading)").first().waitFor();
    await fits(`the tab ${name}`);
  }
  await page.goto(`/${space}`);
  await page.locator("main", { hasText: "Wide-" }).waitFor();
  await fits("the node above it");
  await page.context().close();
});

test("dark follows the system, can be chosen, and documents with colours of their own stay readable", async () => {
  const page = await mesh.open(`/${space}/plan`, { colorScheme: "dark" });
  await page.getByRole("heading", { name: "Milestones" }).waitFor();
  const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  assert.equal(await background(), "rgb(15, 18, 23)");
  await mesh.picture(page, "dark-document");
  const note = page.locator(".document div", { hasText: "A light note without a text colour." }).last();
  assert.equal(await note.evaluate((element) => getComputedStyle(element).color), "rgb(27, 31, 36)");
  await page.getByRole("button", { name: "Theme" }).click();
  await page.getByRole("menuitemradio", { name: "Light" }).click();
  assert.equal(await background(), "rgb(255, 255, 255)");
  await page.reload();
  await page.getByRole("heading", { name: "Milestones" }).waitFor();
  assert.equal(await background(), "rgb(255, 255, 255)");
  await page.context().close();
});

test("a read that fails for now is told as temporary and tried again on a click", async () => {
  const page = await mesh.open("/");
  await item(page, "Launch team").waitFor();
  const problem = { type: "/api/errors#starting", title: "The owner is still starting", status: 503, detail: "gate 'schema' closed for 3 s", code: "starting", retry: "after", target: `${space}/plan`, reported_by: "owner" };
  await page.route("**/api/render/**", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", headers: { "retry-after": "2" }, body: JSON.stringify(problem) }));
  await page.goto(`/${space}/plan`);
  await hasText(page.locator(".error-panel"), "This is temporary");
  await hasText(page.locator(".error-panel"), "gate 'schema' closed for 3 s");
  await mesh.picture(page, "temporary-error");
  await page.unroute("**/api/render/**");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { name: "Milestones" }).waitFor();
  await page.context().close();
});

test("a lost connection is told, reading goes on without it, and it comes back", async () => {
  const page = await mesh.open(`/${space}/plan`);
  await isLive(page);
  let away = true;
  await page.route("**/api/live*", (route) => (away ? route.abort() : route.continue()));
  await page.locator(".document a", { hasText: "budget" }).click();
  await page.locator(".connection.reconnecting").waitFor();
  await hasText(page.locator(".document"), "Numbers.");
  await mesh.picture(page, "reconnecting");
  // Pressed while the server is away: the button is there until the connection is, which comes back by itself.
  const tried = page.waitForRequest(/\/api\/live/, { timeout: patience });
  await page.getByRole("button", { name: "Try now" }).click();
  await tried;
  away = false;
  await isLive(page);
  await page.context().close();
});

test("an address without a node says so and offers to make one", async () => {
  const page = await mesh.open(`/${space}/nowhere`);
  await hasText(page.locator(".empty"), "There is nothing at");
  await mesh.picture(page, "absent");
  await page.context().close();
});

test("no page reported an error, broke the content security policy or a rule of accessibility", () => {
  assert.deepEqual(mesh.complaints, []);
});
