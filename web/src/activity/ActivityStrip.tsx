import type { MeshNode } from "@hubmesh/client";
import { useCallback, useState } from "preact/hooks";
import { useLive } from "../app/hooks.ts";
import { hrefOf } from "../app/place.ts";
import { useSession } from "../app/session.ts";
import { runningActivities } from "../search/search.ts";
import { activityView } from "./activity.ts";

const most = 3;

/** What is running now, live, each with its progress and a way to stop it. Nothing when nothing runs. */
export function ActivityStrip() {
  const { live } = useSession();
  const { value } = useLive(useCallback((q: string) => live.query(q), [live]), runningActivities);
  const running = value?.nodes ?? [];
  if (running.length === 0) return null;
  return (
    <section class="activities" aria-label="Running activities">
      {running.slice(0, most).map((node) => <ActivityRow key={node.path} node={node} />)}
      {running.length > most && <p class="activity-more">and {running.length - most} more running</p>}
    </section>
  );
}

function ActivityRow({ node }: { node: MeshNode }) {
  const session = useSession();
  const [asked, setAsked] = useState(false);
  const { title, message, counted, fraction, cancelling } = activityView(node);
  const cancel = (): void => {
    setAsked(true);
    session.client.cancelActivity(node.path).catch((cause: unknown) => {
      setAsked(false);
      session.notifyError(`${title} could not be asked to stop`, cause);
    });
  };
  const stopping = asked || cancelling;
  return (
    <div class="activity">
      <span class="spinner" aria-hidden="true" />
      <a class="activity-title" href={hrefOf({ path: node.path })}>{title}</a>
      <span class="activity-message">{message}</span>
      {counted !== "" && <span class="activity-count">{counted}</span>}
      {fraction !== undefined && <progress value={fraction} max={1} aria-label={`Progress of ${title}`}>{Math.round(fraction * 100)} %</progress>}
      <button type="button" class="button small" disabled={stopping} onClick={cancel}>{stopping ? "Cancelling…" : "Cancel"}</button>
    </div>
  );
}
