import type { DemoLink, DemoState } from "@hubmesh/client";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useSession } from "../app/session.ts";
import { Glyph } from "../ui/Glyph.tsx";
import { isGone, ownerOf } from "./model.ts";
import { SiloCard } from "./SiloCard.tsx";

const moveMs = 650;

/** The three silos and the links between them: a row, closed to a ring by the link above it. */
export function Stage({ state }: { state: DemoState }) {
  const owner = ownerOf(state);
  const root = useRef<HTMLDivElement>(null);
  useMovingBadge(root, owner);
  const { silos, links } = state;
  const place = (name: string): number => silos.findIndex((silo) => silo.name === name);
  return (
    <div class="stage" ref={root} role="group" aria-label="The silos and their links">
      {silos.map((silo) => <SiloCard key={silo.name} silo={silo} links={links} owner={owner === silo.name} serves={state.node.servedBy.includes(silo.name)} path={state.node.path} />)}
      {links.map((link) => {
        const [from, to] = [place(link.a), place(link.b)].sort((a, b) => a - b) as [number, number];
        const idle = isGone(silos[from]) || isGone(silos[to]);
        return <Link key={`${link.a} ${link.b}`} link={link} idle={idle} at={to - from > 1 ? "arc" : from === 0 ? "left" : "right"} />;
      })}
    </div>
  );
}

function Link({ link, idle, at }: { link: DemoLink; idle: boolean; at: "left" | "right" | "arc" }) {
  const session = useSession();
  const { a, b, cut } = link;
  const toggle = (): void => {
    session.client.demoLink(a, b, !cut).catch((cause: unknown) => session.notifyError(`The link ${a} – ${b} was not ${cut ? "healed" : "cut"}`, cause));
  };
  return (
    <div class={`link-line ${at} ${cut ? "cut" : idle ? "idle" : "whole"}`}>
      <button type="button" class="link-button" aria-label={`${cut ? "Heal" : "Cut"} the link between ${a} and ${b}`} title={cut ? `Cut. Heal ${a} – ${b}` : `Cut ${a} – ${b}`} onClick={toggle}>
        <Glyph name={cut ? "unlink" : "link"} />
        <span aria-hidden="true">{a}–{b}</span>
      </button>
    </div>
  );
}

/** Lets the owner badge travel from the card that had it to the one that has it now. */
function useMovingBadge(root: { current: HTMLElement | null }, owner: string | undefined): void {
  const last = useRef<{ owner: string; x: number; y: number } | undefined>(undefined);
  useLayoutEffect(() => {
    const badge = root.current?.querySelector<HTMLElement>(".owner-badge");
    if (badge === null || badge === undefined || owner === undefined) return;
    const box = badge.getBoundingClientRect();
    const [x, y] = [box.left + scrollX, box.top + scrollY];
    const from = last.current;
    last.current = { owner, x, y };
    if (from === undefined || from.owner === owner || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    badge.animate([{ transform: `translate(${from.x - x}px, ${from.y - y}px) scale(1.12)` }, { transform: "none" }], { duration: moveMs, easing: "cubic-bezier(.3, 0, .1, 1)" });
  }, [owner]);
}
