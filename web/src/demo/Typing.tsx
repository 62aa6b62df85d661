import type { MeshNode } from "@hubmesh/client";
import { useCallback, useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useChanges, useLive, useNow } from "../app/hooks.ts";
import { useSession } from "../app/session.ts";
import { duration } from "../cluster/model.ts";
import type { Autosaver } from "../edit/autosave.ts";
import { bodyText } from "../edit/fields.ts";
import { KeptText } from "../edit/KeptText.tsx";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { Glyph } from "../ui/Glyph.tsx";
import { format } from "../ui/Num.tsx";
import { Tile } from "../ui/Tile.tsx";
import { Figures, median } from "./figures.ts";
import { keyMs, keys, typed } from "./robot.ts";
import { Sparkline } from "./Sparkline.tsx";

/** Saved much sooner than in the editor of a node, so that there is something to see. */
const timing = { quietMs: 120, longestMs: 240 };

/** The editor of the demo's node, what another viewer sees of it, and what becomes of the keys. */
export function Typing({ node, owner }: { node: MeshNode; owner: string | undefined }) {
  const session = useSession();
  const [saver] = useState(() => session.saverFor(node.path, node, timing));
  const [figures] = useState(() => new Figures());
  const [base] = useState(() => ({ edits: saver.draft.edits, saves: saver.saves }));
  const saves = useRef(saver.saves);
  useChanges(useCallback((listener: () => void) => saver.onChange(() => {
    figures.count(saver.draft.edits - base.edits, saver.draft.acknowledged - base.edits, Date.now());
    if (saver.saves > saves.current) figures.save(saver.lastSaveMs);
    saves.current = saver.saves;
    listener();
  }), [saver]));
  useEffect(() => () => session.leave(saver), [saver]);
  const [robot, setRobot] = useState(false);
  const panel = useRef<HTMLElement>(null);
  useRobot(saver, robot, panel);
  const id = useId();
  const { state } = saver;
  return (
    <section class="panel typing" aria-label={`Node ${node.path}`} ref={panel}>
      <header class="panel-head">
        <h2><a href={`/${node.path}`}>{node.path}</a></h2>
        <Saving saver={saver} />
        <span class="muted">{owner === undefined ? "served by nobody now: the next key starts it" : <>served by <strong>{owner}</strong></>}</span>
        <button type="button" class={robot ? "button small robot on" : "button small robot"} aria-pressed={robot} onClick={() => setRobot(!robot)}>
          <Glyph name="robot" />{robot ? "Stop typing" : "Type for me"}
        </button>
      </header>
      {state.kind === "failed" && state.retryAt === undefined && <ErrorPanel error={state.error} what="Not saved: your text is kept here" onRetry={() => saver.flush()} compact />}
      {state.kind === "deleted" && <p class="banner warning" role="alert">The node was deleted. Your text is kept here. <button type="button" class="button small" onClick={() => void saver.createAgain()}>Create it again</button></p>}
      <div class="two-sides">
        <div class="side-pane">
          <label for={id}>You type here</label>
          <KeptText id={id} saver={saver} class="page-text" />
        </div>
        <Viewer saver={saver} />
      </div>
      <Tiles saver={saver} figures={figures} saves={saver.saves - base.saves} />
    </section>
  );
}

/** Calmer than the status of the editor: while somebody types it is always being saved. */
function Saving({ saver }: { saver: Autosaver }) {
  const { kind } = saver.state;
  const text = kind === "saved" ? "Saved" : kind === "failed" ? "Not saved, tried again by itself" : kind === "deleted" ? "Deleted" : "Saving…";
  return <p class={`save-status ${kind === "unsaved" ? "saving" : kind}`} role="status"><span class="dot" aria-hidden="true" />{text}</p>;
}

/** The node as it comes over the live connection, through whichever silo carries it. */
function Viewer({ saver }: { saver: Autosaver }) {
  const { live } = useSession();
  const view = useLive(useCallback((path: string) => live.node(path), [live]), saver.path);
  const text = view.value === undefined ? "" : bodyText(view.value, saver.body);
  const box = useRef<HTMLDivElement>(null);
  const known = useRef({ text, from: text.length, to: text.length });
  if (known.current.text !== text) known.current = { text, ...changed(known.current.text, text) };
  const { from, to } = known.current;
  const id = useId();
  useLayoutEffect(() => {
    const element = box.current;
    if (element !== null) element.scrollTop = element.scrollHeight;
  }, [text]);
  return (
    <div class="side-pane">
      <p class="pane-label" id={id}>Another viewer sees <Behind saver={saver} same={text === saver.text("body")} version={view.version} /></p>
      <div class="page-text mirror" ref={box} role="region" aria-labelledby={id} tabIndex={0}>
        {text.slice(0, from)}<span key={view.version} class="fresh">{text.slice(from, to)}</span>{text.slice(to)}
      </div>
    </div>
  );
}

function Behind({ saver, same, version }: { saver: Autosaver; same: boolean; version: number }) {
  const keys = saver.draft.edits - saver.draft.acknowledged;
  return <span class={same ? "chip good" : "chip"}>v{version} · {same ? "in step" : keys === 0 ? "on its way" : `${keys} ${keys === 1 ? "key" : "keys"} behind`}</span>;
}

/** The stretch of a text that is not as it was. */
function changed(old: string, text: string): { from: number; to: number } {
  const shorter = Math.min(old.length, text.length);
  let from = 0;
  while (from < shorter && old[from] === text[from]) from++;
  let end = 0;
  while (end < shorter - from && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
  return { from, to: text.length - end };
}

function Tiles({ saver, figures, saves }: { saver: Autosaver; figures: Figures; saves: number }) {
  const now = useNow(250);
  const longest = figures.longest(now);
  const { latencies } = figures;
  return (
    <div class="figures">
      <dl class="tiles" aria-label="What became of the keys">
        <Tile label="Keys typed">{format.format(figures.typed)}</Tile>
        <Tile label="Keys saved">{format.format(figures.saved)}</Tile>
        <Tile label="Unsaved now" kind={figures.unsaved > 40 ? "warn" : ""}>{format.format(figures.unsaved)}</Tile>
        <Tile label="Saves acknowledged">{format.format(saves)}</Tile>
        <Tile label="Saves tried again">{format.format(saver.retries)}</Tile>
        <Tile label="Longest wait of a key, last minute">{figures.typed === 0 ? "–" : duration(longest)}</Tile>
      </dl>
      <figure class="spark">
        <figcaption>How long a save took {latencies.length > 0 && <span class="muted">middle {duration(median(latencies))}, longest {duration(Math.max(...latencies))}</span>}</figcaption>
        <Sparkline values={latencies} />
      </figure>
    </div>
  );
}

/** Types by itself, a key at a time, at the end of the text. */
function useRobot(saver: Autosaver, on: boolean, panel: { current: HTMLElement | null }): void {
  const [text] = useState(keys);
  useEffect(() => {
    if (!on) return;
    if (!/^$|\s$/.test(saver.text("body"))) saver.edit("body", `${saver.text("body")}\n`);
    const timer = setInterval(() => saver.edit("body", typed(saver.text("body"), text.next().value)), keyMs);
    return () => clearInterval(timer);
  }, [on, saver]);
  const body = saver.text("body");
  useLayoutEffect(() => {
    const area = panel.current?.querySelector("textarea");
    if (on && area !== null && area !== undefined && document.activeElement !== area) area.scrollTop = area.scrollHeight;
  }, [on, body]);
}
