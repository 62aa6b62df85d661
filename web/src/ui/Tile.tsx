import type { HubmeshError } from "@hubmesh/client";
import type { ComponentChildren } from "preact";

/** A figure with its name; inside a <dl class="tiles">. */
export function Tile({ label, children, kind }: { label: string; children: ComponentChildren; kind?: string }) {
  return <div class={`tile ${kind ?? ""}`}><dt>{label}</dt><dd>{children}</dd></div>;
}

/** Says when what is shown is not live any more. */
export function StreamState({ lost }: { lost: HubmeshError | undefined }) {
  return (
    <p class="stream" role="status" title={lost?.detail}>
      {lost !== undefined && <><span class="dot" aria-hidden="true" />Connection lost: this is the last that was seen</>}
    </p>
  );
}
