import { type HubmeshError, isObject, printJson, type Json } from "@hubmesh/client";
import { Glyph } from "./Glyph.tsx";

const common = new Set(["type", "title", "status", "detail", "code", "retry"]);

/** An error as it is: what, why, its code, the facts that the server gave, and whether trying again makes sense. */
export function ErrorPanel(props: { error: HubmeshError; what?: string; onRetry?: (() => void) | undefined; compact?: boolean }) {
  const { error, what, onRetry, compact } = props;
  const facts = Object.entries(error.problem).filter(([name]) => !common.has(name));
  const title = what ?? (error.title === "" ? error.code : error.title);
  return (
    <div class={compact === true ? "error-panel compact" : "error-panel"} role="alert">
      <Glyph name="warning" />
      <div class="error-body">
        <p class="error-title">{title}</p>
        {error.detail !== "" && <p>{error.detail}</p>}
        {what !== undefined && error.detail === "" && error.title !== "" && <p>{error.title}</p>}
        {error.transient && <p class="muted">This is temporary: the same request may succeed in a moment{error.retryAfter === undefined ? "." : `; the server asks to wait ${seconds(error.retryAfter)}.`}</p>}
        <p class="error-foot">
          {onRetry !== undefined && error.retry !== "never" && <button type="button" class="button small" onClick={onRetry}>Try again</button>}
          <code>{error.status > 0 ? `${error.status} ${error.code}` : error.code}</code>
          {/^(\/|https?:)/.test(error.type) && <a href={error.type}>What this means</a>}
        </p>
        {facts.length > 0 && (
          <details>
            <summary>Facts</summary>
            <dl class="facts">
              {facts.map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name}=`}>{factOf(value)}</dd>])}
            </dl>
          </details>
        )}
      </div>
    </div>
  );
}

function factOf(value: Json): string {
  return isObject(value) || Array.isArray(value) ? printJson(value) : String(value);
}

function seconds(n: number): string {
  return n === 1 ? "1 second" : `${n} seconds`;
}
