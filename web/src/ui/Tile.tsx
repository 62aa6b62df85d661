import type { HubmeshError } from "@hubmesh/client";
import type { ComponentChildren } from "preact";

/** A figure with its name; inside a <dl class="tiles">. */
export function Tile({ label, children, kind }: { label: string; children: ComponentChildren; kind?: string }) {
  return <div class={`tile ${kind ?? ""}`}><dt>{label}</dt><dd>{children}</dd></div>;
}

/** Whether what is shown comes in live, or is the last that was seen. */
export function StreamState({ lost }: { lost: HubmeshError | undefined }) {
  return (
    <p class={lost === undefined ? "stream live" : "stream lost"} role="status" title={lost?.detail}>
      <span class="dot" aria-hidden="true" />{lost === undefined ? "Live" : "Connection lost: this is the last that was seen"}
    </p>
  );
}
