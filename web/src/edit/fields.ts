import { diffMergePatch, equalJson, isObject, parseJson, printJson, type Json, type JsonObject, type MeshNode } from "@hubmesh/client";
import { newDraft, type Draft, type Values } from "./draft.ts";

/** How a node's fields are shown as texts to edit, and how edited texts become a merge patch. */
export type Body =
  | { kind: "markdown"; member: string }
  | { kind: "json" };

/** Types of content that are documents, also where their text is not called "markdown". */
const documentTypes = new Set(["Markdown", "MarkdownContent", "Article"]);

/** Whether the content is a document, and in which member: the server's renderer looks in the same ones. */
export function bodyOf(node: MeshNode): Body {
  const content = node.content ?? {};
  if (!isObject(content)) return { kind: "json" };
  const isText = (member: string): boolean => typeof content[member] === "string" && content[member] !== "";
  if (isText("markdown")) return { kind: "markdown", member: "markdown" };
  const type = content["$type"];
  if (node.nodeType === "Markdown" || (typeof type === "string" && documentTypes.has(type))) {
    return { kind: "markdown", member: ["text", "body", "content"].find(isText) ?? "markdown" };
  }
  return typeof content["markdown"] === "string" ? { kind: "markdown", member: "markdown" } : { kind: "json" };
}

export function valuesOf(node: MeshNode, body: Body): Values {
  return { name: node.name ?? "", description: node.description ?? "", body: bodyText(node, body) };
}

export function draftOf(node: MeshNode, body: Body): Draft {
  const values = valuesOf(node, body);
  return newDraft(node.version, {
    name: { text: values["name"] ?? "" },
    description: { text: values["description"] ?? "" },
    body: body.kind === "json" ? { text: values["body"] ?? "", same: sameJson } : { text: values["body"] ?? "" },
  });
}

/** The text of the Markdown; "" when there is none. */
export function bodyText(node: MeshNode, body: Body): string {
  const { content } = node;
  if (body.kind === "json") return content === undefined ? "" : printJson(content, 2);
  const text = isObject(content) ? content[body.member] : undefined;
  return typeof text === "string" ? text : "";
}

/** What to send for edited texts: a merge patch, or the whole content where a merge patch can not say it. */
export type Change = { patch: JsonObject; content?: never } | { patch: JsonObject; content: Json };

/** Throws a SyntaxError with the reader's words when the JSON text is not valid. */
export function changeOf(node: MeshNode, body: Body, values: Values): Change {
  const patch: JsonObject = {};
  for (const name of ["name", "description"] as const) {
    if (values[name] !== undefined) patch[name] = values[name] === "" ? null : values[name];
  }
  const text = values["body"];
  if (text === undefined) return { patch };
  if (body.kind === "markdown") {
    const typed: JsonObject = node.content === undefined ? { $type: "Markdown" } : {};
    return { patch: { ...patch, content: { ...typed, [body.member]: text } } };
  }
  if (text.trim() === "") return { patch: { ...patch, content: null } };
  const content = parseJson(text);
  const change = diffMergePatch(node.content, content);
  if (change === undefined) return { patch, content };
  return { patch: { ...patch, content: change } };
}

function sameJson(a: string, b: string): boolean {
  if (a === b) return true;
  try {
    return equalJson(parse(a), parse(b));
  } catch {
    return false;
  }
}

function parse(text: string): Json | undefined {
  return text.trim() === "" ? undefined : parseJson(text);
}
