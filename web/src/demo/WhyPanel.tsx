import { printJson, type HubmeshError, type Why } from "@hubmesh/client";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useHidden, useLoad } from "../app/hooks.ts";
import { useSession } from "../app/session.ts";
import { duration, shortEpoch } from "../cluster/model.ts";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { Glyph } from "../ui/Glyph.tsx";
import { incidentsOf, missingOf } from "./model.ts";

const everyMs = 2_000;
const maxIncidents = 5;

/** Asks the silos about the node, again and again while it is open. */
export function WhyPanel({ path }: { path: string }) {
  const [open, setOpen] = useState(false);
  return (
    <section class="panel why" aria-label="Why">
      <header class="panel-head">
        <h2>Why?</h2>
        {!open && <span class="muted">ask the silos about {path}</span>}
        <button type="button" class="button small" aria-expanded={open} aria-controls="why-answer" onClick={() => setOpen(!open)}>
          <Glyph name="pulse" />{open ? "Close" : "Ask"}
        </button>
      </header>
      <div id="why-answer">{open && <Answers path={path} />}</div>
    </section>
  );
}

function Answers({ path }: { path: string }) {
  const { client } = useSession();
  const hidden = useHidden();
  const [round, setRound] = useState(0);
  const { value, error, loading } = useLoad(hidden ? undefined : `why ${path}\n${round}`, (signal) => client.why(path, { signal }));
  useEffect(() => {
    if (loading || hidden) return;
    const timer = setTimeout(() => setRound((n) => n + 1), everyMs);
    return () => clearTimeout(timer);
  }, [loading, hidden]);
  // While one answer replaces another, the last one stays; so does the last in which somebody was missing.
  const last = useRef<{ why?: Why; error?: HubmeshError; missed?: Why }>({});
  if (!loading) last.current = { ...last.current, ...(error === undefined ? {} : { error }), ...(value === undefined ? {} : { why: value }) };
  if (!loading && error === undefined) delete last.current.error;
  if (value?.cluster !== undefined && value.cluster.missing.length > 0) last.current.missed = value;
  const { why, missed } = last.current;
  return (
    <>
      {last.current.error !== undefined && <ErrorPanel error={last.current.error} what="No answer in time" compact />}
      {why === undefined ? last.current.error === undefined && <p class="muted asking"><span class="spinner" />Asking the silos…</p> : <Answer why={why} missed={missed === why ? undefined : missed} />}
    </>
  );
}

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

function Answer({ why, missed }: { why: Why; missed: Why | undefined }) {
  const { cluster } = why;
  const incidents = incidentsOf(why);
  return (
    <div class="why-answer">
      <p class="clause">{why.clause === "" ? "Nothing is known of it here." : why.clause}</p>
      <dl class="why-facts">
        {cluster !== undefined && (
          <>
            <Fact name="Owner">{cluster.owner === undefined ? "nobody serves it now" : <><strong>{cluster.owner.silo}</strong> <span class="muted">epoch <code>{shortEpoch(cluster.owner.epoch)}</code>, registration {cluster.owner.registration}{cluster.owner.unsure === true && ", granted while a member was missing"}</span></>}</Fact>
            <Fact name="Slot owner">{cluster.slotOwner ?? "none"} <span class="muted">view {cluster.view}</span></Fact>
            <Fact name="Answered"><Took why={why} /></Fact>
            <Fact name="Missing">{cluster.missing.length === 0 ? <span class="muted">nobody</span> : <Missing why={why} />}</Fact>
            {missed !== undefined && <Fact name={`Missing at ${clock.format(Date.parse(missed.observedAt))}`}><Missing why={missed} /></Fact>}
          </>
        )}
        <Fact name="Lately">
          {incidents.length === 0 ? <span class="muted">no refusal and no repair</span> : (
            <ul class="plain">{incidents.slice(0, maxIncidents).map((i, n) => <li key={n}>{i.what}{i.reason !== undefined && <> as <em>{i.reason}</em></>}{i.answeredBy !== undefined && ` by ${i.answeredBy}`} <span class="muted">{duration(i.agoMs)} ago, seen by {i.seenBy}</span></li>)}</ul>
          )}
        </Fact>
      </dl>
      <details class="raw">
        <summary>The whole answer of {why.answeredBy}, {clock.format(Date.parse(why.observedAt))}</summary>
        <pre tabIndex={0}>{printJson(why, 2)}</pre>
      </details>
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <><dt>{name}</dt><dd>{children}</dd></>;
}

/** Who answered, each with how long it took and why it was asked. */
function Took({ why }: { why: Why }) {
  const answered = (why.cluster?.observations ?? []).filter((o) => o.missing === undefined);
  return <>{answered.map((o, n) => <span key={n}>{n > 0 && ", "}{o.silo} <span class="muted">{o.role.replace("-", " ")} {duration(o.tookMs)}</span></span>)}</>;
}

function Missing({ why }: { why: Why }) {
  return (
    <ul class="plain missing">
      {(why.cluster?.missing ?? []).map((text) => {
        const { silo, reason } = missingOf(text);
        const seen = why.cluster?.observations.find((o) => o.silo === silo && o.missing !== undefined);
        return (
          <li key={text}>
            <strong>{silo}</strong> {reason}
            {seen !== undefined && <span class="muted"> after {duration(seen.tookMs)}{seen.lastPongMs !== undefined && `, last heard ${duration(seen.lastPongMs)} before`}{seen.suspect === true && ", suspected"}</span>}
          </li>
        );
      })}
    </ul>
  );
}
