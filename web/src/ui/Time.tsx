import { useEffect, useState } from "preact/hooks";

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000], ["month", 2_592_000], ["week", 604_800], ["day", 86_400], ["hour", 3_600], ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const absolute = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });

export function relativeTime(at: number, now: number): string {
  const seconds = Math.round((at - now) / 1000);
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return seconds > -10 ? "just now" : `${-seconds} seconds ago`;
}

/** A moment as "3 minutes ago", exact in its tooltip. */
export function Time(props: { at: string | undefined }) {
  const at = Date.parse(props.at ?? "");
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, [at]);
  if (Number.isNaN(at)) return null;
  return <time dateTime={props.at} title={absolute.format(at)}>{relativeTime(at, now)}</time>;
}

export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  const steps = ["kB", "MB", "GB", "TB"];
  let value = size;
  let step = -1;
  while (value >= 1000 && step < steps.length - 1) {
    value /= 1000;
    step++;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${steps[step]}`;
}
