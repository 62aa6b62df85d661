import type { MeshNode } from "@hubmesh/client";

/** The queries that the page asks, in one place. */
export const runningActivities = "nodeType:Activity content.status:Running";
export const typeDefinitions = "nodeType:NodeType scope:subtree limit:200";

/** How many hits are asked for, and how many are shown. */
const asked = 50;
export const shown = 20;

/** The query for what was typed: every word must occur. Undefined when there is no word. */
export function searchQuery(typed: string): string | undefined {
  const words = wordsOf(typed);
  if (words.length === 0) return undefined;
  return `${words.map((word) => `"${word}"`).join(" ")} scope:subtree context:search limit:${asked}`;
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
