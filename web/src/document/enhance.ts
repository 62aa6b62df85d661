import { isPlace } from "../app/place.ts";
import { highlight } from "./highlight.ts";
import { resolveImage, resolveLink } from "./links.ts";

/** Gives images their address and their manners before they begin to load. */
export function prepareImages(fragment: DocumentFragment, nodePath: string): void {
  for (const image of fragment.querySelectorAll("img")) {
    const resolved = resolveImage(nodePath, image.getAttribute("src") ?? "");
    if (resolved !== undefined) image.setAttribute("src", resolved);
    image.setAttribute("loading", "lazy");
    image.setAttribute("decoding", "async");
  }
}

/** Makes a new block of a document work in the page: links, images, code, tables, anchors. */
export function enhance(block: HTMLElement, nodePath: string): void {
  for (const link of within<HTMLAnchorElement>(block, "a[href]")) fixLink(link, nodePath);
  for (const image of within<HTMLImageElement>(block, "img")) tellMissing(image);
  for (const pre of within<HTMLPreElement>(block, "pre")) dressCode(pre);
  for (const table of within<HTMLTableElement>(block, "table")) {
    // A wide table scrolls by itself, also with the keyboard, and the page stays as wide as it is.
    if (table !== block) wrap(table);
    else {
      block.classList.add("wide-table");
      block.tabIndex = 0;
    }
  }
  for (const heading of within<HTMLHeadingElement>(block, "h1, h2, h3, h4, h5, h6")) anchor(heading);
}

function within<T extends HTMLElement>(block: HTMLElement, selector: string): T[] {
  const found = [...block.querySelectorAll<T>(selector)];
  return block.matches(selector) ? [block as T, ...found] : found;
}

function fixLink(link: HTMLAnchorElement, nodePath: string): void {
  const resolved = resolveLink(nodePath, link.getAttribute("href") ?? "");
  if (resolved !== undefined) link.setAttribute("href", resolved);
  const url = new URL(link.href, document.baseURI);
  if (url.origin !== location.origin) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  } else if (!isPlace(url, location.origin)) link.target = "_blank";
}

function tellMissing(image: HTMLImageElement): void {
  image.addEventListener("error", () => {
    const missing = document.createElement("span");
    missing.className = "missing-image";
    missing.textContent = `Image not available: ${image.alt || image.getAttribute("src") || ""}`;
    image.replaceWith(missing);
  }, { once: true });
}

function wrap(table: HTMLTableElement): void {
  const scroller = document.createElement("div");
  scroller.className = "table-scroll";
  scroller.tabIndex = 0;
  scroller.setAttribute("role", "region");
  scroller.setAttribute("aria-label", "Table");
  table.replaceWith(scroller);
  scroller.append(table);
}

function dressCode(pre: HTMLPreElement): void {
  const code = pre.querySelector("code");
  const language = /(?:^|\s)lang(?:uage)?-([\w+#-]+)/.exec(`${code?.className ?? ""} ${pre.className}`)?.[1] ?? "";
  const text = (code ?? pre).textContent ?? "";
  // Code that the server has coloured already has elements inside.
  if (code !== null && code.childElementCount === 0) {
    const pieces = highlight(text, language);
    if (pieces !== undefined) {
      code.replaceChildren(...pieces.map(({ text: piece, kind }) => {
        if (kind === undefined) return document.createTextNode(piece);
        const span = document.createElement("span");
        span.className = `hl-${kind}`;
        span.textContent = piece;
        return span;
      }));
    }
  }
  pre.tabIndex = 0;
  pre.classList.add("code");
  if (language !== "") pre.dataset["language"] = language;
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "copy";
  copy.textContent = "Copy";
  copy.addEventListener("click", () => {
    navigator.clipboard?.writeText(text).then(() => {
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    }, () => { copy.textContent = "Not allowed"; });
  });
  pre.append(copy);
}

function anchor(heading: HTMLHeadingElement): void {
  const text = heading.textContent?.trim() ?? "";
  if (heading.id === "") heading.id = slug(text);
  if (heading.id === "") return;
  const link = document.createElement("a");
  link.className = "anchor";
  link.href = `#${encodeURIComponent(heading.id)}`;
  link.setAttribute("aria-label", `Link to "${text}"`);
  link.textContent = "#";
  heading.append(link);
}

export function slug(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").trim().replace(/\s+/g, "-");
}
