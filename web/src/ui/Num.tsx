import { useRef } from "preact/hooks";

/** Writes numbers. */
export const format = new Intl.NumberFormat("en");

/** A number that is marked for a second after it has changed. */
export function Num({ value, unit }: { value: number; unit?: string }) {
  const held = useRef({ value, changes: 0 });
  if (held.current.value !== value) held.current = { value, changes: held.current.changes + 1 };
  const { changes } = held.current;
  return <span key={changes} class={changes > 0 ? "num moved" : "num"}>{format.format(value)}{unit !== undefined && <span class="unit"> {unit}</span>}</span>;
}
