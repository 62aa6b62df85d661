import { useEffect, useState } from "preact/hooks";
import { useLiveStatus } from "./hooks.ts";
import { useSession } from "./session.ts";

/** Whether what is shown is live. It says more the less it is. */
export function Connection() {
  const { live } = useSession();
  const { state, error, retryAt } = useLiveStatus();
  const seconds = useCountdown(retryAt);
  const trouble = state === "reconnecting" || state === "refused";
  const text = {
    idle: "", connecting: "Connecting…", connected: "Live", paused: "Paused", closed: "Closed",
    reconnecting: seconds === undefined ? "Reconnecting…" : "Connection lost",
    refused: error?.code === "unauthenticated" ? "Signed out: open a new login link" : (error?.title ?? "Live updates refused"),
  }[state];
  return (
    <div class={`connection ${state}`} role="status" title={error?.detail}>
      <span class="dot" aria-hidden="true" />
      <span class={trouble ? "" : "connection-text"}>{text}</span>
      {seconds !== undefined && <span class="muted" aria-hidden="true">next try in {seconds} s</span>}
      {trouble && <button type="button" class="link" onClick={() => live.reconnect()}>Try now</button>}
    </div>
  );
}

function useCountdown(until: number | undefined): number | undefined {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (until === undefined) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [until]);
  return until === undefined ? undefined : Math.max(0, Math.ceil((until - now) / 1000));
}
