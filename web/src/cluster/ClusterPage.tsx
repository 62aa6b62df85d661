import type { ClusterStatus, StatesOptions } from "@hubmesh/client";
import { useCallback, useEffect } from "preact/hooks";
import { useStates } from "../app/hooks.ts";
import { useSession } from "../app/session.ts";
import { Loading } from "../node/NodePage.tsx";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { Glyph } from "../ui/Glyph.tsx";
import { format, Num } from "../ui/Num.tsx";
import { StreamState, Tile } from "../ui/Tile.tsx";
import { total } from "./model.ts";
import { ProcessFacts, SiloPanel } from "./SiloPanel.tsx";

/** The cluster as its silos see it now, for an Admin. */
export function ClusterPage() {
  const { client } = useSession();
  const { value, error, lost, reload } = useStates(useCallback((options: StatesOptions) => client.watchCluster(options), [client]));
  useEffect(() => {
    document.title = "Cluster · hubmesh";
  }, []);
  return (
    <article class="cluster">
      <header class="screen-head">
        <h1 tabIndex={-1}>Cluster</h1>
        {value !== undefined && error === undefined && <Observed status={value} />}
        {value !== undefined && <StreamState lost={lost} />}
      </header>
      {error !== undefined
        ? <ErrorPanel error={error} what={error.code === "forbidden" ? "Only an administrator may see the cluster" : "The cluster can not be shown"} onRetry={reload} />
        : value === undefined ? <Waiting lost={lost} /> : value.cluster ? <Silos status={value} /> : <Alone status={value} />}
    </article>
  );
}

function Waiting({ lost }: { lost: Parameters<typeof StreamState>[0]["lost"] }) {
  return lost === undefined ? <Loading /> : <ErrorPanel error={lost} what="The cluster is not reached yet" />;
}

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

function Observed({ status }: { status: ClusterStatus }) {
  return (
    <p class="muted">
      {status.cluster ? <>asked by <strong>{status.askedBy}</strong>, observed at </> : "observed at "}
      <time dateTime={status.observedAt}>{clock.format(Date.parse(status.observedAt))}</time>
    </p>
  );
}

function Silos({ status }: { status: ClusterStatus }) {
  const { totals } = status;
  return (
    <>
      <dl class="tiles" aria-label="Totals over the silos that answered">
        <Tile label="Silos that answered"><Num value={status.answered} /> <span class="of">of {status.silos.length}</span></Tile>
        <Tile label="Slots owned"><Num value={totals.slots.owned} /> <span class="of">of {format.format(totals.slots.total)}</span></Tile>
        <Tile label="Slots settled"><Num value={totals.slots.settled} /></Tile>
        <Tile label="Directory entries"><Num value={totals.slots.entries} /></Tile>
        <Tile label="Nodes served"><Num value={totals.claims.granted} /> {totals.claims.claiming > 0 && <span class="of">+{totals.claims.claiming} claiming</span>}</Tile>
        <Tile label="Process hubs landed"><Num value={totals.claims.processesLanded} /> <span class="of">of {totals.claims.processes}</span></Tile>
        <Tile label="Refusals"><Num value={total(totals.refusals)} /></Tile>
        <Tile label="Repairs"><Num value={total(totals.repairs)} /></Tile>
        <Tile label="Greatest feed lag"><Num value={totals.feedLagMs} unit="ms" /></Tile>
      </dl>
      {status.missing.length > 0 && (
        <div class="banner warning" role="status">
          <Glyph name="warning" />
          <div>
            <strong>{status.missing.length === 1 ? "One silo did not answer" : `${status.missing.length} silos did not answer`}</strong>
            <ul class="plain">{status.missing.map((text) => <li key={text}>{text}</li>)}</ul>
          </div>
        </div>
      )}
      <div class="silo-grid">
        {status.silos.map((report) => <SiloPanel key={report.silo} status={status} report={report} />)}
      </div>
    </>
  );
}

function Alone({ status }: { status: ClusterStatus }) {
  return (
    <>
      <p class="banner"><Glyph name="node" /><span>This server is one process and part of no cluster. <code>hubmesh serve --postgres URL --cluster-listen HOST:PORT</code> makes it a silo.</span></p>
      {status.process !== undefined && (
        <section class="silo-panel alone" aria-label="This process">
          <header><h2>{status.process.id}</h2><span class="chip good">one process</span></header>
          <ProcessFacts process={status.process} />
        </section>
      )}
    </>
  );
}
