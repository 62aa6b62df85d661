// The pages of the demo and of the cluster, in Chromium, on `hubmesh demo` (HUBMESH_DEMO_URL, HUBMESH_DEMO_LOGIN)
// or on a mock that plays three silos.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Harness, patience } from "./harness.mjs";

/** @typedef {import("playwright-core").Page} Page */

/** @type {Harness} */
let demo;
/** A server that is no silo and no demo. @type {Harness} */
let plain;

before(async () => {
  [demo, plain] = await Promise.all([Harness.demo(), Harness.mock()]);
});
after(async () => {
  await Promise.all([demo?.stop(), plain?.stop()]);
});

const names = ["s1", "s2", "s3"];
/** @param {Page} page @param {string} name */
const card = (page, name) => page.getByRole("region", { name: `Silo ${name}`, exact: true });
/** @param {Page} page @param {string} name */
const button = (page, name) => page.getByRole("button", { name, exact: true });
/** @param {Page} page */
const editor = (page) => page.getByLabel("You type here");
/** @param {Page} page @param {(argument: any) => boolean} condition @param {any} [argument] */
const until = (page, condition, argument) => page.waitForFunction(condition, argument, { timeout: patience });
/** @param {Page} page @param {string} name @param {string} state */
const isIn = (page, name, state) => card(page, name).locator(".silo-state", { hasText: state }).waitFor({ timeout: patience });

/** The silo with the owner badge; waits until one has it, other than a given one. @param {Page} page @param {string} [not] */
async function owner(page, not = "") {
  await until(page, (n) => {
    const name = document.querySelector(".owner-badge")?.closest("section")?.querySelector("h2")?.textContent;
    return name !== undefined && name !== null && name !== n;
  }, not);
  return (await page.locator("section:has(> header .owner-badge) h2").first().textContent()) ?? "";
}

/** Numbers from 0 to 1, the same for the same seed. @param {number} seed */
function seeded(seed) {
  let state = (seed % 2_147_483_646) + 1;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

/** The text of the demo's node, as the API gives it. @param {Page} page */
const stored = (page) => page.evaluate(async () => (await (await fetch("/api/nodes/Demo/Page")).json()).content.markdown);
/** @param {Page} page @param {string} name */
const figure = async (page, name) => Number((await page.locator(".tile", { has: page.locator("dt", { hasText: name }) }).locator("dd").textContent())?.replaceAll(",", ""));
/** Until the server is known to hold everything. @param {Page} page */
const allSaved = (page) => page.locator(".typing .save-status.saved").waitFor({ timeout: patience });

/** A page with the demo in it, all three silos up, and a text of our own. @param {string} text @param {import("playwright-core").BrowserContextOptions} [options] */
async function open(text, options = {}) {
  const page = await demo.open("/_demo", { viewport: { width: 1280, height: 960 }, ...options });
  await page.getByRole("heading", { name: "Three silos, one page" }).waitFor();
  for (const name of names) {
    if (await button(page, `Restart ${name}`).isVisible()) await button(page, `Restart ${name}`).click();
    if (await button(page, `Thaw ${name}`).isVisible()) await button(page, `Thaw ${name}`).click();
    await isIn(page, name, "up");
  }
  await editor(page).fill(""); // nobody serves a node that nobody uses
  await editor(page).fill(text);
  await allSaved(page);
  await owner(page);
  return page;
}

test("what is typed is seen by another viewer, and the figures count it", async () => {
  const page = await open("Written by a test.\n");
  await editor(page).press("Control+End");
  const [typed, saves] = [await figure(page, "Keys typed"), await figure(page, "Saves acknowledged")];
  await editor(page).pressSequentially("Nine keys", { delay: 20 });
  await page.locator(".mirror", { hasText: "Nine keys" }).waitFor();
  await allSaved(page);
  await page.locator(".chip", { hasText: "in step" }).waitFor();
  assert.equal(await figure(page, "Keys typed"), typed + 9);
  assert.equal(await figure(page, "Keys saved"), typed + 9);
  assert.equal(await figure(page, "Unsaved now"), 0);
  assert.ok(await figure(page, "Saves acknowledged") > saves);
  await demo.picture(page, "demo");
  await page.context().close();
});

test("the silo that serves the page is killed while somebody types: no key is lost and the cursor stays", async () => {
  const page = await open("The beginning.\n\nThe end.\n");
  const before = await owner(page);
  await editor(page).focus();
  await editor(page).evaluate((/** @type {HTMLTextAreaElement} */ area) => area.setSelectionRange(15, 15));
  const already = await figure(page, "Keys typed");
  const typed = Array.from({ length: 60 }, (_, n) => `w${n} `).join("");
  const typing = editor(page).pressSequentially(typed, { delay: 25, timeout: 2 * patience });
  await page.waitForTimeout(600);
  // The focus stays where it is: somebody else kills it.
  await button(page, `Kill ${before}`).evaluate((/** @type {HTMLButtonElement} */ element) => element.click());
  await typing;
  const wanted = `The beginning.\n${typed}\nThe end.\n`;
  assert.equal(await editor(page).inputValue(), wanted);
  assert.equal(await editor(page).evaluate((/** @type {HTMLTextAreaElement} */ area) => (document.activeElement === area ? area.selectionStart : -1)), 15 + typed.length);
  await allSaved(page);
  assert.equal(await stored(page), wanted);
  assert.equal(await figure(page, "Keys typed"), already + typed.length);
  assert.equal(await figure(page, "Keys saved"), already + typed.length);
  await isIn(page, before, "killed");
  const now = await owner(page, before);
  await page.locator(".mirror", { hasText: "w59" }).waitFor();
  await page.locator(".events li", { hasText: "killed" }).first().waitFor();
  await demo.picture(page, "demo-killed");
  console.log(`  ${before} was killed, ${now} serves; saves tried again: ${await figure(page, "Saves tried again")}, longest wait of a key: ${await page.locator(".tile", { hasText: "Longest wait" }).locator("dd").textContent()}`);
  await page.context().close();
});

test("a frozen owner is named by Why, with who answered and which bound fired", async () => {
  const page = await open("Frozen soon.\n");
  let missing = "";
  for (let round = 0; round < 4 && missing === ""; round++) {
    await stored(page); // nobody serves a node that nobody uses
    const frozen = await owner(page);
    await button(page, `Freeze ${frozen}`).click();
    await button(page, "Ask").click();
    const line = page.locator(".why-facts .missing li").first();
    missing = await line.waitFor({ timeout: 5_000 }).then(async () => (await line.textContent()) ?? "", () => "");
    if (missing !== "") {
      assert.match(missing, new RegExp(`^${frozen} .{8,}`), "the one that stands still is missing, with the reason");
      const answered = (await page.locator(".why-facts dt:text-is('Answered') + dd").textContent()) ?? "";
      assert.ok(names.filter((name) => name !== frozen).some((name) => answered.includes(name)), `answered: ${answered}`);
      await demo.picture(page, "demo-why");
      console.log(`  missing: ${missing}\n  answered: ${answered}`);
    }
    await page.locator(".why details.raw summary").click();
    await page.locator(".why pre", { hasText: "\"address\": \"Demo/Page\"" }).waitFor();
    await button(page, "Close").click();
    await button(page, `Thaw ${frozen}`).click();
    await isIn(page, frozen, "up");
  }
  assert.notEqual(missing, "", "nobody was ever missing while the owner stood still");
  await editor(page).press("Control+End");
  await editor(page).pressSequentially("Thawed.", { delay: 10 });
  await allSaved(page);
  assert.equal(await stored(page), "Frozen soon.\nThawed.");
  await page.context().close();
});

test("a link is cut and healed, by its button and by the keyboard", async () => {
  const page = await open("Cut.\n");
  await button(page, "Cut the link between s1 and s2").click();
  await button(page, "Heal the link between s1 and s2").waitFor();
  await page.locator(".link-line.left.cut").waitFor();
  await demo.picture(page, "demo-cut");
  await button(page, "Heal the link between s1 and s2").press("Enter");
  await button(page, "Cut the link between s1 and s2").waitFor();
  await editor(page).press("Control+End");
  await editor(page).pressSequentially("Healed.", { delay: 10 });
  await allSaved(page);
  assert.equal(await stored(page), "Cut.\nHealed.");
  await page.context().close();
});

test("a silo that left is started again and takes part again", async () => {
  const page = await open("Rolling.\n");
  const left = await owner(page);
  await button(page, `Leave ${left}`).press("Enter");
  await isIn(page, left, "left");
  await editor(page).press("Control+End");
  await editor(page).pressSequentially("On.", { delay: 10 });
  await allSaved(page);
  await owner(page, left);
  await button(page, "Restart " + left).press("Enter");
  await isIn(page, left, "up");
  await until(page, (name) => {
    const found = [...document.querySelectorAll(".silo-card")].find((e) => e.querySelector("h2")?.textContent === name);
    return Number.parseInt(found?.querySelector(".counts dd")?.textContent?.replaceAll(",", "") ?? "0", 10) > 0;
  }, left);
  assert.equal(await stored(page), "Rolling.\nOn.");
  await page.context().close();
});

test("the robot types by itself until it is stopped, and the events can be filtered", async () => {
  const page = await open("");
  await button(page, "Type for me").click();
  await until(page, () => Number(document.querySelector(".typing .tile dd")?.textContent) > 60);
  const killed = await owner(page);
  await button(page, `Kill ${killed}`).click();
  await owner(page, killed);
  const typed = await figure(page, "Keys typed");
  await until(page, (n) => Number(document.querySelector(".typing .tile dd")?.textContent) > n + 30, typed);
  await button(page, "Ask").click();
  await page.locator(".why-facts").waitFor();
  await demo.picture(page, "demo-light", { rules: false }); // they would hold up the robot
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForTimeout(400); // colours fade
  await demo.picture(page, "demo-dark");
  await button(page, "Stop typing").click();
  await allSaved(page);
  assert.equal(await stored(page), await editor(page).inputValue());
  assert.equal(await figure(page, "Keys saved"), await figure(page, "Keys typed"));
  await page.getByRole("group", { name: "Events of" }).getByRole("button", { name: killed }).click();
  await page.locator(".events li", { hasText: "killed" }).first().waitFor();
  const others = await page.locator(".events .who").allTextContents();
  assert.ok(others.every((name) => name === killed), `events of ${others.join(" ")}`);
  await page.context().close();
});

test("whatever happens to the silos, every key is stored once and in its order", async () => {
  const seconds = Number(process.env["HUBMESH_DEMO_SECONDS"] ?? 15);
  const seed = Number(process.env["HUBMESH_DEMO_SEED"] ?? Date.now() % 1_000_000);
  const random = seeded(seed);
  const page = await open("");
  await editor(page).focus();
  let typed = "";
  let typing = true;
  const end = Date.now() + seconds * 1000;
  const hands = (async () => {
    for (let n = 0; typing; n++) {
      await page.keyboard.type(`k${n}${n % 12 === 11 ? "\n" : " "}`, { delay: 30 });
      typed += `k${n}${n % 12 === 11 ? "\n" : " "}`;
    }
  })();
  /** @type {Record<string, number>} */
  const done = {};
  try {
    while (Date.now() < end) {
      await page.waitForTimeout(300 + random() * 1200);
      const states = await page.evaluate(() => [...document.querySelectorAll(".silo-card")].map((e) => e.classList.item(1)));
      const n = Math.floor(random() * names.length);
      const choices = states[n] === "frozen" ? ["Thaw", "Thaw", "Kill"] : ["killed", "left", "failed"].includes(states[n] ?? "") ? ["Restart"] : states.filter((s) => s === "up").length > 1 && states[n] === "up" ? ["Kill", "Freeze", "Leave"] : [];
      const what = choices[Math.floor(random() * choices.length)];
      if (what === undefined) continue;
      done[what] = (done[what] ?? 0) + 1;
      // The state may have changed meanwhile; the focus stays in the text.
      await button(page, `${what} ${names[n]}`).evaluate((/** @type {HTMLButtonElement} */ element) => element.click(), undefined, { timeout: 1000 }).catch(() => undefined);
    }
  } finally {
    typing = false;
  }
  await hands;
  await page.locator(".typing .save-status.saved").waitFor({ timeout: 60_000 });
  const told = `seed ${seed}, ${JSON.stringify(done)}, longest wait of a key ${await page.locator(".tile", { hasText: "Longest wait" }).locator("dd").textContent()}, tries again ${await figure(page, "Saves tried again")}`;
  assert.equal(await editor(page).inputValue(), typed, told);
  assert.equal(await stored(page), typed, told);
  assert.equal(await figure(page, "Keys saved"), await figure(page, "Keys typed"), told);
  await until(page, (text) => document.querySelector(".mirror")?.textContent === text, typed);
  console.log(`  ${typed.length} keys; ${told}`);
  await page.context().close();
});

test("the demo fits a phone", async () => {
  const page = await open("On a phone.\n", { viewport: { width: 390, height: 844 } });
  await button(page, "Ask").click();
  await page.locator(".why-facts").waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "the page is wider than the screen");
  await demo.picture(page, "demo-phone");
  await page.context().close();
});

test("an administrator goes to the cluster from the menu and sees each silo move", async () => {
  const page = await demo.open("/_demo", { viewport: { width: 1280, height: 900 } });
  await page.getByRole("button", { name: /^Signed in as/ }).click();
  await page.getByRole("menuitem", { name: "Cluster" }).click();
  await page.getByRole("heading", { level: 1, name: "Cluster" }).waitFor();
  for (const name of names) await card(page, name).getByText("up", { exact: true }).first().waitFor();
  const observed = await page.locator(".screen-head time").getAttribute("datetime");
  await until(page, (at) => document.querySelector(".screen-head time")?.getAttribute("datetime") !== at, observed);
  assert.equal(await page.locator(".tile", { hasText: "Silos that answered" }).locator("dd").textContent(), "3 of 3");
  await demo.picture(page, "cluster");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 390, height: 844 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "the page is wider than the screen");
  await demo.picture(page, "cluster-phone");
  await page.context().close();
});

test("a server that is no cluster and no demo says so, and who may not see the cluster is told", async () => {
  const page = await plain.open("/_cluster");
  await page.getByText("This server is one process and part of no cluster").waitFor();
  await page.getByRole("heading", { level: 2, name: "mock" }).waitFor();
  await plain.picture(page, "cluster-none");
  await page.goto("/_demo");
  await page.getByRole("heading", { name: "This server is no demo" }).waitFor();
  await page.getByText("hubmesh demo", { exact: true }).waitFor();
  await plain.picture(page, "demo-none");
  if (plain.mocked !== undefined) plain.mocked.control.notAdmin = true;
  await page.goto("/_cluster");
  await page.getByText("Only an administrator may see the cluster").waitFor();
  await page.getByRole("button", { name: /^Signed in as/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).waitFor();
  assert.equal(await page.getByRole("menuitem", { name: "Cluster" }).count(), 0);
  await page.context().close();
});

test("no page reported an error, and no picture broke a rule", () => {
  assert.deepEqual([...demo.complaints, ...plain.complaints], []);
});
