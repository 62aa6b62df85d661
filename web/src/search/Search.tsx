import { parentPath } from "@hubmesh/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { useDebounced, useLoad } from "../app/hooks.ts";
import { useSession } from "../app/session.ts";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { Glyph } from "../ui/Glyph.tsx";
import { NodeIcon } from "../ui/NodeIcon.tsx";
import { searchFor, searchQueries } from "./search.ts";

const quietMs = 150;

/** Search by name: a combobox after the ARIA pattern. "/" or Ctrl+K from anywhere goes to it. */
export function Search() {
  const { client, router } = useSession();
  const [typed, setTyped] = useState("");
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const root = useRef<HTMLDivElement>(null);
  const settled = useDebounced(typed, quietMs);
  const wanted = searchQueries(settled).length > 0;
  const { value, error, loading, reload } = useLoad(wanted ? `search\n${settled}` : undefined, (signal) => searchFor(settled, (query) => client.query(query, { signal })));
  const hits = wanted ? (value?.hits ?? []) : [];
  const showing = open && wanted;

  useEffect(() => setActive(0), [settled]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const at = event.target as HTMLElement;
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || at.isContentEditable;
      if ((event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) || (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey))) {
        event.preventDefault();
        input.current?.focus();
        input.current?.select();
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);

  const go = (path: string): void => {
    setOpen(false);
    setTyped("");
    input.current?.blur();
    router.go({ path });
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "Escape") {
      if (showing) setOpen(false);
      else setTyped("");
      return;
    }
    if (event.key === "Enter" && showing) {
      event.preventDefault();
      const hit = hits[active];
      if (hit !== undefined && settled === typed) go(hit.path);
      return;
    }
    const moves: Record<string, number> = { ArrowDown: active + 1, ArrowUp: active - 1 };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    setOpen(true);
    if (hits.length > 0) setActive((to + hits.length) % hits.length);
  };

  return (
    <div
      class="search"
      ref={root}
      role="search"
      onFocusOut={(event) => {
        if (!(root.current?.contains(event.relatedTarget as Node | null) ?? false)) setOpen(false);
      }}
    >
      <Glyph name="search" />
      <input
        ref={input}
        type="search"
        role="combobox"
        list={undefined}
        aria-label="Search by name"
        aria-expanded={showing}
        aria-controls="search-results"
        aria-autocomplete="list"
        aria-activedescendant={showing && hits[active] !== undefined ? `hit-${active}` : undefined}
        placeholder="Search"
        autocomplete="off"
        spellcheck={false}
        value={typed}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onKeyDown={onKey}
      />
      <kbd aria-hidden="true">/</kbd>
      {showing && (
        <div class="search-panel">
          <ul id="search-results" role="listbox" aria-label="Found nodes">
            {hits.map((hit, n) => (
              <li
                key={hit.path}
                id={`hit-${n}`}
                role="option"
                aria-selected={n === active}
                class={n === active ? "active" : ""}
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => go(hit.path)}
                onMouseMove={() => setActive(n)}
              >
                <NodeIcon icon={hit.icon} nodeType={hit.nodeType ?? ""} />
                <span class="hit-name">{hit.name ?? hit.id}</span>
                <span class="hit-path">{parentPath(hit.path)}</span>
              </li>
            ))}
          </ul>
          <div class="search-note" role="status">
            {error !== undefined ? <ErrorPanel error={error} onRetry={reload} compact /> : loading || settled !== typed ? "Searching…" : hits.length === 0 ? "Nothing found" : value?.truncated === true ? "There is more: type more of the name" : ""}
          </div>
        </div>
      )}
    </div>
  );
}
