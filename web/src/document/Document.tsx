import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { onThemeChange } from "../app/theme.ts";
import { Blocks } from "./blocks.ts";
import { fixContrast } from "./contrast.ts";
import { enhance, prepareImages } from "./enhance.ts";

export interface Heading {
  id: string;
  text: string;
  level: number;
}

interface Props {
  path: string;
  html: string;
  /** A heading of this text at the top is left out: the page shows it already. */
  title?: string;
  /** Changed blocks do not light up. */
  quiet?: boolean;
  onShown?: (headings: Heading[]) => void;
}

/** A node's document: HTML that the server has rendered and sanitised. Changed blocks light up for a moment. */
export function Document(props: Props) {
  const { path, html, title, onShown, quiet } = props;
  const root = useRef<HTMLDivElement>(null);
  const shown = useRef<{ path: string; blocks: Blocks } | undefined>(undefined);

  useLayoutEffect(() => {
    const container = root.current;
    if (container === null) return;
    const first = shown.current === undefined || shown.current.path !== path;
    if (first) {
      container.replaceChildren();
      shown.current = { path, blocks: new Blocks(container) };
    }
    for (const element of shown.current?.blocks.show(html, (fragment) => prepareImages(fragment, path)) ?? []) {
      enhance(element, path);
      if (!first && quiet !== true) {
        element.classList.add("just-changed");
        element.addEventListener("animationend", () => element.classList.remove("just-changed"), { once: true });
      }
    }
    const top = container.firstElementChild;
    if (top instanceof HTMLHeadingElement) top.hidden = top.tagName === "H1" && textOf(top) === title;
    fixContrast(container);
    onShown?.(headingsOf(container));
  }, [path, html, title]);

  useEffect(() => onThemeChange(() => root.current !== null && fixContrast(root.current)), []);

  return <div ref={root} class="document" />;
}

function headingsOf(container: HTMLElement): Heading[] {
  return [...container.querySelectorAll<HTMLElement>("h1[id]:not([hidden]), h2[id], h3[id]")].map((heading) => ({
    id: heading.id,
    text: textOf(heading),
    level: Number(heading.tagName[1]),
  }));
}

/** The text of a heading without the sign of its anchor. */
function textOf(heading: HTMLElement): string {
  return (heading.textContent ?? "").replace(/#$/, "").trim();
}
