import type { Child, MeshNode, Snapshot } from "@hubmesh/client";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSession } from "../app/session.ts";
import { Document, type Heading } from "../document/Document.tsx";
import { useRendered } from "../document/rendered.ts";
import { bodyOf } from "../edit/fields.ts";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { Contents } from "./Contents.tsx";
import { DataView } from "./DataView.tsx";
import { Loading } from "./NodePage.tsx";

/** The node as its readers see it: its document, or its content as a table, and what lies below. */
export function ViewTab(props: { node: MeshNode; children: Snapshot<Child[]>; hash: string; onCreate: () => void }) {
  const { node, children, hash, onCreate } = props;
  const { router } = useSession();
  const { value, error, loading, reload } = useRendered(node.path, node.version);
  const [headings, setHeadings] = useState<Heading[]>([]);
  const hasDocument = value !== undefined && value.html !== "";
  const isDocument = bodyOf(node).kind === "markdown";
  const ready = value !== undefined || error !== undefined;

  useLayoutEffect(() => {
    if (!ready) return;
    if (router.restore !== undefined) {
      window.scrollTo(0, router.restore);
      router.restore = undefined;
    }
  }, [ready, node.path]);
  const scrolledTo = useRef("");
  useEffect(() => {
    const target = `${node.path}#${hash}`;
    if (hash === "" || !ready || scrolledTo.current === target) return;
    scrolledTo.current = target;
    document.getElementById(hash)?.scrollIntoView();
  }, [hash, ready, node.path]);

  return (
    <div class="view">
      <div class="view-main">
        {error !== undefined && <ErrorPanel error={error} what="The document can not be shown" onRetry={reload} />}
        {hasDocument && <Document path={node.path} html={value.html} title={node.name ?? node.id} onShown={setHeadings} />}
        {!hasDocument && isDocument && error === undefined && (loading ? <Loading /> : <p class="muted empty-document">This document is empty.</p>)}
        {!hasDocument && !isDocument && node.content !== undefined && <DataView value={node.content} />}
        <Contents children={children} onCreate={node.content === undefined && !hasDocument ? onCreate : undefined} />
      </div>
      {hasDocument && headings.length > 2 && <Outline headings={headings} />}
    </div>
  );
}

/** What is on the page, beside it, where there is room. */
function Outline({ headings }: { headings: Heading[] }) {
  const [active, setActive] = useState("");
  useEffect(() => {
    const seen = new Set<string>();
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) seen.add(entry.target.id);
        else seen.delete(entry.target.id);
      }
      const first = headings.find((heading) => seen.has(heading.id));
      if (first !== undefined) setActive(first.id);
    }, { rootMargin: "-56px 0px -60% 0px" });
    for (const heading of headings) {
      const element = document.getElementById(heading.id);
      if (element !== null) observer.observe(element);
    }
    return () => observer.disconnect();
  }, [headings]);
  const top = Math.min(...headings.map((heading) => heading.level));
  return (
    <nav class="outline" aria-label="On this page">
      <p>On this page</p>
      <ul>
        {headings.map((heading) => (
          <li key={heading.id} style={{ paddingLeft: `${(heading.level - top) * 12}px` }}>
            <a href={`#${encodeURIComponent(heading.id)}`} class={heading.id === active ? "active" : ""}>{heading.text}</a>
          </li>
        ))}
      </ul>
    </nav>
  );
}
