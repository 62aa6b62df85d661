import type { DemoAction, DemoLink, DemoSilo } from "@hubmesh/client";
import type { ComponentChildren } from "preact";
import { useNow } from "../app/hooks.ts";
import { useSession } from "../app/session.ts";
import { duration, total } from "../cluster/model.ts";
import { Glyph } from "../ui/Glyph.tsx";
import { Num } from "../ui/Num.tsx";
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
        <Count label="Slots">{status === null ? "–" : <><Num value={status.slots.owned} /><span class="of"> / {status.slots.total}</span></>}</Count>
        <Count label="Claims">{status === null ? "–" : <><Num value={status.claims.granted + status.claims.processesLanded} />{status.claims.claiming > 0 && <span class="of"> +{status.claims.claiming}</span>}</>}</Count>
        <Count label="Refusals">{status === null ? "–" : <Num value={total(status.refusals)} />}</Count>
        <Count label="Repairs">{status === null ? "–" : <Num value={total(status.repairs)} />}</Count>
        <Count label="Requests"><Num value={front.requests} /></Count>
        <Count label="Streams"><Num value={front.streams} /></Count>
        <Count label="Failed"><Num value={front.failed} /></Count>
        <Count label="View">{status === null ? "–" : status.view}</Count>
      </dl>
      <Acts silo={silo} links={links} />
    </section>
  );
}

function Count({ label, children }: { label: string; children: ComponentChildren }) {
  return <div><dt>{label}</dt><dd>{children}</dd></div>;
}

const words: Record<DemoSilo["state"], string> = { starting: "starting", up: "up", frozen: "frozen", killed: "killed", leaving: "leaving", left: "left", failed: "failed" };

function Since({ silo, cutOff }: { silo: DemoSilo; cutOff: boolean }) {
  const now = useNow(1000);
  return (
    <span class="silo-state">
      <span class="dot" aria-hidden="true" />
      {words[silo.state]}{cutOff && silo.state === "up" && ", cut off"} <time class="muted" dateTime={silo.since}>{duration(Math.floor(Math.max(0, now - Date.parse(silo.since)) / 1000) * 1000).replace(".0", "").replace(/^0 ms$/, "now")}</time>
    </span>
  );
}

function noteOf(silo: DemoSilo, owner: boolean, path: string): string {
  if (silo.waiting.length > 0) return `waits for ${silo.waiting.join(", ")}`;
  if (silo.status?.isolated === true && silo.state === "up") return "isolated: it serves nothing";
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
