// What the end-to-end tests stand on: a server (given by the environment, or the mock), a browser, and
// a way to write to the server beside the page.
//
//   HUBMESH_URL          where the server listens; without it the mock is started
//   HUBMESH_LOGIN        a login link of it (used once)
//   HUBMESH_TOKEN        a token with the rights of an administrator
//   HUBMESH_URL_B, HUBMESH_LOGIN_B  the same of a second server on the same database, for shared.test.mjs
//   HUBMESH_DEMO_URL, HUBMESH_DEMO_LOGIN  a running `hubmesh demo` and its login link, for demo.test.mjs
//   HUBMESH_DEMO_SECONDS, HUBMESH_DEMO_SEED  how long, and by which numbers, silos die while somebody types there
//   HUBMESH_SCREENSHOTS  a directory for pictures of each scenario
import { mkdir } from "node:fs/promises";
import axe from "axe-core";
import { join } from "node:path";
import { chromium } from "playwright-core";

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {import("playwright-core").BrowserContextOptions} ContextOptions */

const screenshots = process.env["HUBMESH_SCREENSHOTS"];
const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** Milliseconds that a step may take: long enough for a busy machine. */
export const patience = 30_000;

export class Harness {
  /** @type {(() => unknown)[]} */
  #closers = [];
  /** Problems that pages reported, which no scenario expects. @type {string[]} */
  complaints = [];

  /** @param {string} [suffix] of the variables: "_B" is the second server on the same database */
  static async start(suffix = "") {
    const harness = new Harness();
    await harness.#start(suffix);
    return harness;
  }

  /** Three silos: `hubmesh demo`, or a mock that plays them. */
  static async demo() {
    const harness = new Harness();
    await harness.#open(process.env["HUBMESH_DEMO_URL"], process.env["HUBMESH_DEMO_LOGIN"], "", { demo: true });
    return harness;
  }

  /** The mock, whatever the environment says. */
  static async mock() {
    const harness = new Harness();
    await harness.#open("", "", "", {});
    return harness;
  }

  /** @param {string} suffix */
  #start(suffix) {
    return this.#open(process.env[`HUBMESH_URL${suffix}`], process.env[`HUBMESH_LOGIN${suffix}`], process.env["HUBMESH_TOKEN"], {});
  }

  /** @param {string | undefined} url @param {string | undefined} login @param {string | undefined} token @param {{ demo?: boolean }} options of the mock */
  async #open(url, login, token, options) {
    this.url = (url ?? "").replace(/\/$/, "");
    this.token = token ?? "";
    /** @type {Awaited<ReturnType<typeof import("../test/mock/server.mjs").startMock>> | undefined} */
    this.mocked = undefined;
    if (this.url === "") {
      const { startMock } = await import("../test/mock/server.mjs");
      const mock = await startMock(options);
      this.mocked = mock;
      this.#closers.push(() => mock.stop());
      [this.url, this.token, login] = [mock.origin, mock.token, mock.login];
    }
    this.browser = await chromium.launch({ executablePath, args });
    this.#closers.unshift(() => this.browser?.close());
    const context = await this.browser.newContext();
    const page = await context.newPage();
    await page.goto(login ?? this.url);
    this.state = await context.storageState();
    await context.close();
    if (screenshots !== undefined) await mkdir(screenshots, { recursive: true });
  }

  async stop() {
    for (const close of this.#closers) await close();
  }

  /** A page of somebody who is signed in, or not. @param {string} path @param {ContextOptions & { anonymous?: boolean }} [options] */
  async open(path, { anonymous = false, ...options } = {}) {
    if (this.browser === undefined) throw new Error("the browser is not started");
    const context = await this.browser.newContext({
      baseURL: this.url ?? "",
      viewport: { width: 1360, height: 860 },
      colorScheme: "light",
      ...(anonymous || this.state === undefined ? {} : { storageState: this.state }),
      ...options,
    });
    context.setDefaultTimeout(patience);
    const page = await context.newPage();
    page.on("pageerror", (error) => this.complaints.push(`${path}: ${error.message}`));
    page.on("console", (message) => {
      if (/Content Security Policy/i.test(message.text())) this.complaints.push(`${path}: ${message.text()}`);
    });
    await page.goto(path);
    return page;
  }

  /** A call of the API with the token. @param {string} method @param {string} route @param {unknown} [body] */
  async api(method, route, body) {
    const response = await fetch(this.url + route, {
      method,
      headers: { authorization: `Bearer ${this.token}`, ...(body === undefined || body instanceof Uint8Array ? {} : { "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json" }) },
      ...(body === undefined ? {} : { body: /** @type {BodyInit} */ (body instanceof Uint8Array ? body : JSON.stringify(body)) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** @param {string} path @param {any} fields */
  create(path, fields) {
    return this.api("POST", `/api/nodes/${path.split("/").map(encodeURIComponent).join("/")}`, fields);
  }

  /** @param {string} path @param {string} name @param {string} markdown */
  document(path, name, markdown) {
    return this.create(path, { nodeType: "Markdown", name, content: { $type: "Markdown", markdown } });
  }

  /**
   * Takes a picture, and looks at the page with the rules of WCAG 2.2 AA that a program can check.
   * @param {Page} page @param {string} name @param {{ rules?: boolean }} [options]
   */
  async picture(page, name, { rules = true } = {}) {
    if (screenshots !== undefined) await page.screenshot({ path: join(screenshots, `${name}.png`) });
    if (!rules) return;
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => /** @type {any} */ (window).axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"] }));
    for (const { id, nodes } of violations) {
      for (const { target, failureSummary } of nodes.slice(0, 3)) this.complaints.push(`${name}: ${id} at ${target}: ${failureSummary.replaceAll("\n", " ")}`);
    }
  }
}
