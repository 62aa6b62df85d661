import type { DemoAction, DemoLink, DemoSilo, Sums } from "@hubmesh/client";
import type { ComponentChildren } from "preact";
import { useNow } from "../app/hooks.ts";
import { useSession } from "../app/session.ts";
import { duration, happened, total, words } from "../cluster/model.ts";
import { Glyph } from "../ui/Glyph.tsx";
import { format, Num } from "../ui/Num.tsx";
import { actsOf, isCutOff } from "./model.ts";

/** One silo: how it is, what it does, and what can be done to it. */
export function SiloCard(props: { silo: DemoSilo; links: readonly DemoLink[]; owner: boolean; serves: boolean; path: string }) {
  const { silo, links, owner, serves, path } = props;
  const { name, state, status, front } = silo;
  const share = status === null || status.slots.total === 0 || state === "killed" || state === "left" ? 0 : status.slots.owned / status.slots.total;
  return (
    <section class={`silo-card ${state} ${owner ? "owner" : ""}`} aria-label={`Silo ${name}`}>
      <header>
        <h2>{name}</h2>
        <Since silo={silo} cutOff={isCutOff(name, links)} />
        {owner && <span class="owner-badge"><Glyph name="edit" />owner</span>}
        {serves && !owner && <span class="chip">hub still here</span>}
      </header>
      <p class="silo-where">
        {silo.url === "" ? <span class="muted">no HTTP server now</span> : <a href={silo.url} target="_blank" rel="noreferrer">{silo.url.replace(/^https?:\/\//, "")}</a>}
        <span class="silo-note">{noteOf(silo, owner, path)}</span>
      </p>
      <div class="slot-bar" aria-hidden="true"><span style={{ width: `${share * 100}%` }} /></div>
      <dl class={state === "up" ? "counts" : "counts stale"}>
        <Count label="Slots">{status === null ? "–" : <><Num value={status.slots.owned} /><span class="of"> / {format.format(status.slots.total)}</span></>}</Count>
        <Count label="Claims" detail={status === null ? undefined : `${status.claims.granted} nodes, ${status.claims.processesLanded} process hubs`}>{status === null ? "–" : <><Num value={status.claims.granted + status.claims.processesLanded} />{status.claims.claiming > 0 && <span class="of"> +{status.claims.claiming}</span>}</>}</Count>
        <Count label="Refusals" detail={status === null ? undefined : listed(status.refusals)}>{status === null ? "–" : <Num value={total(status.refusals)} />}</Count>
        <Count label="Repairs" detail={status === null ? undefined : listed(status.repairs)}>{status === null ? "–" : <Num value={total(status.repairs)} />}</Count>
        <Count label="Requests"><Num value={front.requests} /></Count>
        <Count label="Streams"><Num value={front.streams} /></Count>
        <Count label="Failed"><Num value={front.failed} /></Count>
        <Count label="View">{status === null ? "–" : status.view}</Count>
      </dl>
      <Acts silo={silo} links={links} />
    </section>
  );
}

function listed(sums: Sums): string | undefined {
  return happened(sums).map(([name, n]) => `${words(name)} ${n}`).join(", ") || undefined;
}

function Count({ label, children, detail }: { label: string; children: ComponentChildren; detail?: string | undefined }) {
  return <div title={detail}><dt>{label}</dt><dd>{children}</dd></div>;
}

function Since({ silo, cutOff }: { silo: DemoSilo; cutOff: boolean }) {
  const now = useNow(1000);
  return (
    <span class="silo-state">
      <span class="dot" aria-hidden="true" />
      {silo.state}{cutOff && silo.state === "up" && ", cut off"} <time class="muted" dateTime={silo.since}>{sinceText(now - Date.parse(silo.since))}</time>
    </span>
  );
}

/** Whole seconds: it is drawn once a second. */
function sinceText(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return seconds < 1 ? "now" : seconds < 10 ? `${seconds} s` : duration(seconds * 1000);
}

function noteOf(silo: DemoSilo, owner: boolean, path: string): string {
  if (silo.waiting.length > 0) return `waiting: ${silo.waiting.join(", ")}`;
  if (silo.status?.isolated === true && silo.state === "up") return "isolated: it asks the membership before it answers";
  if (silo.why !== undefined && silo.why !== "") return silo.why;
  if (owner) return `serves ${path}`;
  return silo.state === "up" && !silo.ready ? "not ready" : "";
}

function Acts({ silo, links }: { silo: DemoSilo; links: readonly DemoLink[] }) {
  const session = useSession();
  const run = (action: DemoAction, label: string): void => {
    session.client.demoAct(silo.name, action).catch((cause: unknown) => session.notifyError(`${label} ${silo.name}`, cause));
  };
  return (
    <div class="acts" role="group" aria-label={`What to do to ${silo.name}`}>
      {actsOf(silo, links).map(({ action, label, glyph, enabled }, i) => (
        <button
          key={i}
          type="button"
          class={`button small ${action}`}
          aria-disabled={!enabled}
          aria-label={`${label} ${silo.name}`}
          onClick={() => enabled && run(action, label)}
        >
          <Glyph name={glyph} />{label}
        </button>
      ))}
    </div>
  );
}
