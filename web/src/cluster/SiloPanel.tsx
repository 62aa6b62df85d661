import type { ClusterStatus, PeerStatus, ProcessStatus, SiloReport, Sums } from "@hubmesh/client";
import type { ComponentChildren } from "preact";
import { format, Num } from "../ui/Num.tsx";
import { duration, happened, judged, shortEpoch, words } from "./model.ts";

/** One silo: what it tells of itself, and how the others judge it. */
export function SiloPanel({ status, report }: { status: ClusterStatus; report: SiloReport }) {
  const { suspectedBy, leaving } = judged(status, report);
  const told = report.status;
  return (
    <section class={told === undefined ? "silo-panel missing" : "silo-panel"} aria-label={`Silo ${report.silo}`}>
      <header>
        <h2>{report.silo}</h2>
        {told === undefined ? <span class="chip bad">no answer</span> : <span class={`chip ${told.phase === "up" ? "good" : "warn"}`}>{told.phase}</span>}
        {told?.isolated === true && <span class="chip bad">isolated</span>}
        {leaving && told?.phase !== "leaving" && <span class="chip warn">leaving</span>}
        {suspectedBy.length > 0 && <span class="chip warn">suspected by {suspectedBy.join(", ")}</span>}
        <span class="took muted">{duration(report.tookMs)}</span>
      </header>
      <p class="ident">
        <span>epoch <code title={report.epoch}>{shortEpoch(report.epoch)}</code></span>
        {told !== undefined && <span>view <code>{told.view}</code></span>}
        {told !== undefined && <span><code>{told.addr}</code></span>}
      </p>
      {told === undefined ? <p class="why-missing">{report.missing}</p> : (
        <>
          <dl class="pairs">
            <Pair label="Slots owned"><Num value={told.slots.owned} /> <span class="of">of {format.format(told.slots.total)}</span></Pair>
            <Pair label="Settled"><Num value={told.slots.settled} /></Pair>
            <Pair label="Entries"><Num value={told.slots.entries} /></Pair>
            <Pair label="Nodes served"><Num value={told.claims.granted} /></Pair>
            <Pair label="Claiming"><Num value={told.claims.claiming} /></Pair>
            <Pair label="Process hubs"><Num value={told.claims.processesLanded} /> <span class="of">of {told.claims.processes} landed</span></Pair>
          </dl>
          {told.process !== undefined && <ProcessFacts process={told.process} />}
          <div class="sums">
            {told.placements !== undefined && <SumsList title="Placements elsewhere" sums={told.placements} />}
            <SumsList title="Refusals" sums={told.refusals} />
            <SumsList title="Repairs" sums={told.repairs} />
          </div>
        </>
      )}
    </section>
  );
}

function Pair({ label, children }: { label: string; children: ComponentChildren }) {
  return <div><dt>{label}</dt><dd>{children}</dd></div>;
}

function SumsList({ title, sums }: { title: string; sums: Sums }) {
  const rows = happened(sums);
  return (
    <div class="sums-list">
      <h3>{title}</h3>
      {rows.length === 0 ? <p class="muted">none</p> : (
        <dl>{rows.map(([name, n]) => <div key={name}><dt>{words(name)}</dt><dd><Num value={n} /></dd></div>)}</dl>
      )}
    </div>
  );
}

/** What a process tells of itself beside its part in the cluster. */
export function ProcessFacts({ process }: { process: ProcessStatus }) {
  const { feed, peers } = process;
  return (
    <>
      <dl class="pairs">
        <Pair label="Hubs"><Num value={process.hubs} /></Pair>
        <Pair label="Asks pending"><Num value={process.asksPending} /></Pair>
        {feed !== undefined && <Pair label="Feed"><span class={feed.live ? "state good" : "state bad"}>{feed.live ? "live" : "not live"}</span></Pair>}
        {feed !== undefined && <Pair label="Feed lag"><Num value={feed.lagMs} unit="ms" /></Pair>}
        {feed !== undefined && <Pair label="Feed resets"><Num value={feed.resets} /></Pair>}
        {feed !== undefined && <Pair label="Feed pending"><Num value={feed.pending} /></Pair>}
      </dl>
      {peers !== undefined && peers.length > 0 && (
        <div class="sums-list peers">
          <h3>Peers</h3>
          <dl>{peers.map((peer) => <div key={peer.silo}><dt>{peer.silo} <span class={`state ${stateOf(peer).kind}`}>{stateOf(peer).text}</span></dt><dd><Num value={peer.calls} /> <span class="of">calls</span>{peer.lost > 0 && <> · <Num value={peer.lost} /> <span class="of">lost</span></>}</dd></div>)}</dl>
        </div>
      )}
    </>
  );
}

function stateOf(peer: PeerStatus): { kind: string; text: string } {
  if (peer.suspect === true) return { kind: "warn", text: "suspect" };
  if (peer.connected && peer.accepted) return { kind: "good", text: "connected" };
  if (peer.connected) return { kind: "warn", text: "only from here" };
  return peer.accepted ? { kind: "warn", text: "only to here" } : { kind: "bad", text: "not connected" };
}
