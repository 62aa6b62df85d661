import { diff } from "../text/diff.ts";

/**
 * Puts HTML into a container block by block: what is the same stays as it is on the screen, with its
 * images, its scroll position and its selection, and only what changed is drawn anew.
 */
export class Blocks {
  private sources: string[] = [];

  constructor(private readonly container: HTMLElement) {}

  /**
   * Shows the HTML, which must be sanitised. `prepare` sees it before it is in the page, where images
   * would begin to load. Returns the elements that are new.
   */
  show(html: string, prepare?: (fragment: DocumentFragment) => void): HTMLElement[] {
    const template = document.createElement("template");
    template.innerHTML = html;
    prepare?.(template.content);
    const nodes = [...template.content.childNodes].filter((node) => node.nodeType === Node.ELEMENT_NODE || (node.textContent ?? "").trim() !== "");
    const sources = nodes.map((node) => (node instanceof Element ? node.outerHTML : (node.textContent ?? "")));
    const held = [...this.container.childNodes];
    const fresh: HTMLElement[] = [];
    for (const { a0, a1, b0, b1 } of diff(this.sources, sources)) {
      const before = held[a1] ?? null;
      for (const node of held.slice(a0, a1)) node.remove();
      for (const node of nodes.slice(b0, b1)) {
        this.container.insertBefore(node, before);
        if (node instanceof HTMLElement) fresh.push(node);
      }
    }
    this.sources = sources;
    return fresh;
  }
}
