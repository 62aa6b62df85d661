import type { DemoState, StatesOptions } from "@hubmesh/client";
import { useCallback, useEffect, useMemo } from "preact/hooks";
import { useLive, useStates } from "../app/hooks.ts";
import { clusterPath } from "../app/place.ts";
import { useSession } from "../app/session.ts";
import { Loading } from "../node/NodePage.tsx";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { StreamState } from "../ui/Tile.tsx";
import { EventLog } from "./EventLog.tsx";
import { complete, ownerOf } from "./model.ts";
import { Stage } from "./Stage.tsx";
import { Typing } from "./Typing.tsx";
import { WhyPanel } from "./WhyPanel.tsx";

/** Three silos to kill, freeze, cut and restart while somebody types into a node that they serve. */
export function DemoPage() {
  const { client } = useSession();
  const { value: told, error, lost, reload } = useStates(useCallback((options: StatesOptions) => client.demoState(options), [client]));
  useEffect(() => {
    document.title = "Demo · hubmesh";
  }, []);
  const value = useMemo(() => (told === undefined ? undefined : complete(told)), [told]);
  if (error?.code === "not_found") return <NoDemo />;
  if (error !== undefined) return <article class="demo"><ErrorPanel error={error} what="The demo can not be shown" onRetry={reload} /></article>;
  if (value === undefined) return <article class="demo">{lost === undefined ? <Loading /> : <ErrorPanel error={lost} what="The demo is not reached yet" />}</article>;
  return (
    <article class="demo">
      <header class="screen-head">
        <h1 tabIndex={-1}>Three silos, one page</h1>
        <StreamState lost={lost} />
        <a class="screen-link" href={`/${clusterPath}`}>Cluster status</a>
        <p class="lead">
          Type, or let the robot type. <strong>Kill the silo with the owner badge</strong>: another one takes over and no key is lost. Freeze one,
          cut a link, and ask why.
        </p>
      </header>
      <Stage state={value} />
      <div class="demo-columns">
        <Page state={value} />
        <div class="demo-side">
          <WhyPanel path={value.node.path} />
          <EventLog events={value.events} silos={value.silos.map(({ name }) => name)} />
        </div>
      </div>
    </article>
  );
}

/** The editor, as soon as its node is there. */
function Page({ state }: { state: DemoState }) {
  const { live } = useSession();
  const { value, status, error } = useLive(useCallback((path: string) => live.node(path), [live]), state.node.path);
  if (value !== undefined) return <Typing key={value.path} node={value} owner={ownerOf(state)} />;
  return (
    <section class="panel typing" aria-label={`Node ${state.node.path}`}>
      {error !== undefined ? <ErrorPanel error={error} what={`${state.node.path} can not be read`} compact />
        : status === "deleted" ? <p class="muted">{state.node.path} was deleted. Start the demo again to get a new one.</p> : <Loading />}
    </section>
  );
}

function NoDemo() {
  return (
    <article class="demo">
      <header class="screen-head"><h1 tabIndex={-1}>This server is no demo</h1></header>
      <div class="empty">
        <p>The demo runs three silos in one process, with a page where they can be killed, frozen, cut off and restarted while somebody types.</p>
        <p>It needs nothing installed. Start it with</p>
        <pre><code>hubmesh demo</code></pre>
        <p class="muted">and open the link that it prints. <a href="/">Back to the spaces of this server</a></p>
      </div>
    </article>
  );
}
