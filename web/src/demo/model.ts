import type { DemoAction, DemoEvent, DemoLink, DemoSilo, DemoSiloState, DemoState, Incident, Why } from "@hubmesh/client";
import type { GlyphName } from "../ui/Glyph.tsx";

/** A button of a silo: what it does, and whether the silo's state allows it. */
export interface Act {
  action: DemoAction;
  label: string;
  glyph: GlyphName;
  enabled: boolean;
}

const dead: readonly DemoSiloState[] = ["killed", "left", "failed"];

/** The buttons of a silo, always at the same places, so that the focus stays where a button changes its meaning. */
export function actsOf(silo: DemoSilo, links: readonly DemoLink[]): Act[] {
  const { state } = silo;
  const gone = dead.includes(state);
  const cut = isCutOff(silo.name, links);
  return [
    gone ? { action: "restart", label: "Restart", glyph: "restart", enabled: true } : { action: "kill", label: "Kill", glyph: "power", enabled: state !== "leaving" },
    state === "frozen" ? { action: "thaw", label: "Thaw", glyph: "play", enabled: true } : { action: "freeze", label: "Freeze", glyph: "pause", enabled: state === "up" },
    cut ? { action: "heal", label: "Heal", glyph: "link", enabled: !gone } : { action: "cut", label: "Cut off", glyph: "unlink", enabled: state === "up" || state === "frozen" },
    { action: "leave", label: "Leave", glyph: "leave", enabled: state === "up" },
  ];
}

/** Whether every link of a silo is cut. */
export function isCutOff(name: string, links: readonly DemoLink[]): boolean {
  const own = links.filter(({ a, b }) => a === name || b === name);
  return own.length > 0 && own.every((link) => link.cut);
}

/** Whether a silo can not take part in anything now. */
export function isGone(silo: DemoSilo | undefined): boolean {
  return silo === undefined || silo.state === "killed" || silo.state === "left" || silo.state === "failed";
}

/** A state with its lists in place: an empty one may come as null. */
export function complete(state: DemoState): DemoState {
  return {
    ...state,
    node: { ...state.node, servedBy: state.node.servedBy ?? [] },
    silos: (state.silos ?? []).map((silo) => ({ ...silo, waiting: silo.waiting ?? [], status: silo.status ?? null })),
    links: state.links ?? [],
    events: state.events ?? [],
  };
}

/** The silo to show as the owner: one that is up is more likely to be it than one that stands still. */
export function ownerOf(state: DemoState): string | undefined {
  const serving = state.silos.filter(({ name }) => state.node.servedBy.includes(name));
  return (serving.find((silo) => silo.state === "up") ?? serving[0])?.name;
}

/** What the silos have seen happen to the address lately, the latest first. */
export function incidentsOf(why: Why): (Incident & { seenBy: string })[] {
  const seen = new Set<string>();
  return (why.cluster?.observations ?? [])
    .filter((o) => !seen.has(o.silo) && seen.add(o.silo) !== undefined)
    .flatMap((o) => (o.recent ?? []).map((incident) => ({ ...incident, seenBy: o.silo })))
    .sort((a, b) => a.agoMs - b.agoMs);
}

/** "s2: silo s2 did not answer" in its two parts, the silo named once. */
export function missingOf(text: string): { silo: string; reason: string } {
  const at = text.indexOf(": ");
  if (at < 0) return { silo: text, reason: "" };
  const [silo, reason] = [text.slice(0, at), text.slice(at + 2)];
  return { silo, reason: reason.startsWith(`silo ${silo} `) ? reason.slice(`silo ${silo} `.length) : reason };
}

const done: Readonly<Record<string, string>> = {
  kill: "killed", freeze: "frozen", thaw: "thawed", restart: "started again", leave: "asked to leave",
  cut: "cut off from the others", heal: "linked to the others again",
};

/** What an event says, without what its line shows anyway, and with the ends of epochs. */
export function textOf({ kind, silo, text }: DemoEvent): string {
  const said = kind === "action" ? (done[text] ?? text) : text;
  return said.replace(` silo=${silo} `, " ").replace(/\b[0-9a-f]{10}([0-9a-f]{6})\b/g, "$1");
}
