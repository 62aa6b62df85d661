import type { DemoEvent } from "@hubmesh/client";
import { useState } from "preact/hooks";
import { textOf } from "./model.ts";

/** What has happened, the newest first. */
export function EventLog({ events, silos }: { events: readonly DemoEvent[]; silos: readonly string[] }) {
  const [only, setOnly] = useState("");
  const shown = events.filter((event) => only === "" || event.silo === only).reverse();
  return (
    <section class="panel log" aria-label="What happened">
      <header class="panel-head">
        <h2>What happened</h2>
        <div class="segmented" role="group" aria-label="Events of">
          {["", ...silos].map((name) => <button key={name} type="button" aria-pressed={only === name} onClick={() => setOnly(name)}>{name === "" ? "all" : name}</button>)}
        </div>
      </header>
      {shown.length === 0 ? <p class="muted">Nothing yet.</p> : (
        <ol class="events" tabIndex={0} aria-label="Events, the newest first">
          {shown.map((event) => (
            <li key={event.seq} title={event.text} class={`${event.kind} ${event.level}`}>
              <time dateTime={event.at}>{timeOf(event.at)}</time>
              <span class="who">{event.silo}</span>
              <span class="what">{event.level !== "info" && <span class="level">{event.level === "warn" ? "warning" : event.level}: </span>}{textOf(event)}</span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

/** "13:04:05.6": tenths, because a takeover is shorter than a second. */
function timeOf(at: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : `${date.toLocaleTimeString("en-GB")}.${Math.floor(date.getMilliseconds() / 100)}`;
}
