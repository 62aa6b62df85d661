import type { ClusterStatus, MemberStatus, SiloReport, Sums } from "@hubmesh/client";

/** The sum of all. */
export function total(sums: Sums | null): number {
  return Object.values(sums ?? {}).reduce((a, b) => a + b, 0);
}

/** What has happened at least once, the most frequent first. */
export function happened(sums: Sums | null): [string, number][] {
  return Object.entries(sums ?? {}).filter(([, n]) => n > 0).sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
}

/** "views-fetched" as people write it. */
export function words(name: string): string {
  return name.replaceAll("-", " ");
}

/** The end of an epoch: enough to tell incarnations of a silo apart. */
export function shortEpoch(epoch: string): string {
  return /^0*$/.test(epoch) ? "none" : epoch.slice(-6);
}

/** How the other silos judge one: who suspects it, and whether it is known to leave. */
export function judged(status: ClusterStatus, report: SiloReport): { suspectedBy: string[]; leaving: boolean } {
  const seen = status.silos.flatMap((by) => (by.status?.members ?? []).filter((m: MemberStatus) => m.epoch === report.epoch).map((m) => ({ by: by.silo, ...m })));
  return {
    suspectedBy: seen.filter((m) => m.suspect === true && m.by !== report.silo).map((m) => m.by),
    leaving: report.status?.phase === "leaving" || seen.some((m) => m.leaving === true),
  };
}

/** A length of time for people: "340 ms", "12 s", "3 min", "2 h". */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const minutes = seconds / 60;
  return minutes < 120 ? `${Math.round(minutes)} min` : `${Math.round(minutes / 60)} h`;
}
