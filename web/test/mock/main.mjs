// Runs the mock by itself: `npm run mock [DIR]` fills it from a tree of Markdown and JSON node files.
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { startMock } from "./server.mjs";

const [source, content] = process.argv.slice(2);
const { store, origin, login } = await startMock({ port: Number(process.env["PORT"] ?? 8090), demo: process.env["DEMO"] === "1", publicRead: process.env["PUBLIC_READ"] === "1" });
store.create("Guide", { nodeType: "Space", name: "Guide", description: "How to use the mesh" }, "system");
store.create("Guide/start", { nodeType: "Markdown", name: "Start here", content: { $type: "Markdown", markdown: "# Start here\n\nThis is the mock.\n" } }, "system");
if (source !== undefined) {
  for (const file of (await readdir(source, { recursive: true })).sort()) {
    const path = file.slice(0, -extname(file).length);
    const text = [".md", ".json"].includes(extname(file)) ? await readFile(join(source, file), "utf8") : "";
    if (extname(file) === ".json") store.write(path, { ...JSON.parse(text), state: undefined }, "import", undefined);
    if (extname(file) === ".md") store.write(path, markdownNode(text), "import", undefined);
  }
  for (const path of [...store.nodes.keys()]) {
    const space = path.split("/")[0] ?? "";
    if (!store.nodes.has(space)) store.write(space, { nodeType: "Space", name: space }, "import", undefined);
  }
}
if (content !== undefined) {
  for (const file of await readdir(content, { recursive: true })) {
    const [space, ...rest] = file.split("/");
    const bytes = await readFile(join(content, file)).catch(() => undefined);
    if (bytes !== undefined) store.files.set([space, "content", ...rest].join("/"), { bytes, type: "", modified: new Date().toISOString() });
  }
}
console.log(`listening on ${origin}\nlogin link ${login}`);

/** @param {string} text */
function markdownNode(text) {
  const [, front = "", body = text] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(text) ?? [];
  const field = (/** @type {string} */ name) => new RegExp(`^${name}:\\s*"?(.*?)"?\\s*$`, "im").exec(front)?.[1];
  return { nodeType: field("NodeType") ?? "Markdown", name: field("Title") ?? field("Name"), description: field("Abstract") ?? field("Description"), icon: field("Icon"), content: { $type: "Markdown", markdown: body } };
}
