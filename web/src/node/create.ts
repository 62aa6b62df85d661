import { parseJson, type NodeFields } from "@hubmesh/client";

/** An id made of a name: letters and digits of any language, parts joined by "-". */
export function idOf(name: string): string {
  return name.trim().replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-_.]+|[-.]+$/g, "");
}

/** What is wrong with an id; undefined when nothing is that the page could know. */
export function idProblem(id: string): string | undefined {
  if (id === "") return undefined;
  if (id === "." || id === "..") return "“.” and “..” can not be ids.";
  if (/[/\\\0]/.test(id)) return "An id is one segment of a path: no “/” and no “\\”.";
  return undefined;
}

/** The fields of a new node; without a type it is untyped. Throws a SyntaxError when the content is not JSON. */
export function newFields(form: { name: string; nodeType: string; body: string }): NodeFields {
  const fields: NodeFields = form.nodeType === "" ? {} : { nodeType: form.nodeType };
  if (form.name.trim() !== "") fields.name = form.name.trim();
  if (form.nodeType === "Markdown") fields.content = { $type: "Markdown", markdown: form.body };
  else if (form.body.trim() !== "") fields.content = parseJson(form.body);
  return fields;
}
