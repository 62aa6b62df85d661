import type { MeshNode, QueryResult } from "@hubmesh/client";

/** The queries that the page asks, in one place (docs/query.md). */
export const runningActivities = "nodeType:Activity content.status:Running";
export const typeDefinitions = "nodeType:NodeType limit:200";

/** How many hits are asked for, and how many are shown. */
const asked = 50;
export const shown = 20;

/**
 * The queries for what was typed, the narrower one first: nodes with every word in their name, then
 * nodes with every word anywhere. The second is asked when the first finds little. Empty without a word.
 */
export function searchQueries(typed: string): string[] {
  const words = wordsOf(typed);
  if (words.length === 0) return [];
  const anywhere = words.map((word) => `"${word}"`).join(" ");
  // In a name only letters and digits are asked for: all else has a meaning in the query language.
  const plain = typed.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  const named = plain.map((word) => `name:*${word}*`).join(" ");
  return [named, anywhere].filter((query) => query !== "").map((query) => `${query} context:search limit:${asked}`);
}

/** Asks the queries and gives the ranked hits. */
export async function searchFor(typed: string, ask: (query: string) => Promise<QueryResult>): Promise<Found> {
  const found = new Map<string, MeshNode>();
  let truncated = false;
  for (const query of searchQueries(typed)) {
    const { nodes, truncated: more } = await ask(query);
    for (const node of nodes) found.set(node.path, node);
    truncated = more;
    if (found.size >= shown) break;
  }
  return { hits: rank([...found.values()], typed), truncated: truncated || found.size > shown };
}

export interface Found {
  hits: MeshNode[];
  /** There are more than these. */
  truncated: boolean;
}

function wordsOf(typed: string): string[] {
  return typed.replace(/["\\]/g, " ").split(/\s+/).filter((word) => word !== "");
}

/** The hits in the order of how well their name fits. Those that match elsewhere come last, as the server has them. */
export function rank(nodes: readonly MeshNode[], typed: string): MeshNode[] {
  const words = wordsOf(typed).map(fold);
  const phrase = words.join(" ");
  const score = (node: MeshNode): number => {
    const name = fold(node.name ?? node.id);
    if (name === phrase || fold(node.id) === phrase) return 0;
    if (name.startsWith(phrase)) return 1;
    if (words.every((word) => name.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(word)))) return 2;
    if (words.every((word) => name.includes(word))) return 3;
    if (words.every((word) => fold(node.path).includes(word))) return 4;
    return 5;
  };
  return nodes.map((node, at) => ({ node, at, score: score(node) }))
    .sort((a, b) => a.score - b.score || a.at - b.at)
    .map(({ node }) => node)
    .slice(0, shown);
}

function fold(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}
