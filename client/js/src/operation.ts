import type { Json } from "./types.ts";

/** What a cluster tells of itself: `/api/cluster`, `/api/why`, and the demo's `/api/demo/state`. */

/** Sums since a start, by name. */
export type Sums = { [name: string]: number };

export interface SlotCounts {
  total: number;
  owned: number;
  /** Of those owned. */
  settled: number;
  /** Directory entries in those owned. */
  entries: number;
}

export interface ClaimCounts {
  /** Process hubs, and those of them that the present owner of their slot has acknowledged. */
  processes: number;
  processesLanded: number;
  /** Node hubs whose grant is under way, and those that are served here. */
  claiming: number;
  granted: number;
  grantedLanded?: number;
}

/** A member of a silo's view as that silo judges it. */
export interface MemberStatus {
  silo: string;
  epoch: string;
  addr: string;
  leaving?: boolean;
  suspect?: boolean;
  lastPongMs?: number;
  /** Node hubs that it serves, by its last sign of life. */
  nodeHubs?: number;
  /** Node types that it handles; absent: all of them. */
  nodeTypes?: string[];
}

/** The relay of a shared database's changes. */
export interface FeedStatus {
  live: boolean;
  lagMs: number;
  pending: number;
  foreign: number;
  resets: number;
  reconnects: number;
  gaps: number;
}

/** A silo as the connections to it and from it are seen. */
export interface PeerStatus {
  silo: string;
  epoch: string;
  connected: boolean;
  accepted: boolean;
  suspect?: boolean;
  pending: number;
  calls: number;
  lost: number;
  notSent?: Sums;
  reconnects: number;
}

export interface ProcessStatus {
  id: string;
  hubs: number;
  asksPending: number;
  feed?: FeedStatus;
  peers?: PeerStatus[];
}

/** What one silo tells of itself. */
export interface SiloStatus {
  silo: string;
  /** Zeros while it is in no view. */
  epoch: string;
  addr: string;
  /** joining, up, leaving, left. */
  phase: string;
  isolated?: boolean;
  view: string;
  members: MemberStatus[];
  slots: SlotCounts;
  claims: ClaimCounts;
  directory?: Sums;
  resolve?: Sums;
  router?: Sums;
  /** Deliveries that were not delivered, by reason. */
  refusals: Sums;
  /** Nodes that were placed on another silo than their caller's, by why, and what became of that. */
  placements?: Sums;
  /** What mended the directory, by what it was. */
  repairs: Sums;
  process?: ProcessStatus;
}

export interface SiloReport {
  silo: string;
  epoch: string;
  tookMs: number;
  /** Set: it did not answer, and why. */
  missing?: string;
  status?: SiloStatus;
}

export interface ClusterStatus {
  /** False: the process is no silo, and `process` tells of it alone. */
  cluster: boolean;
  askedBy: string;
  observedAt: string;
  answered: number;
  /** Silos that did not answer, each with the reason. */
  missing: string[];
  /** Over those that answered. */
  totals: { slots: SlotCounts; claims: ClaimCounts; refusals: Sums; placements?: Sums; repairs: Sums; feedLagMs: number };
  silos: SiloReport[];
  process?: ProcessStatus;
}

/** A refusal of an address, or a repair of its claim. */
export interface Incident {
  agoMs: number;
  what: string;
  reason?: string;
  answeredBy?: string;
}

export interface Holder {
  silo: string;
  epoch: string;
  registration: number;
  /** Granted while a member could not be asked. */
  unsure?: boolean;
}

/** What a silo has seen of an address. */
export interface Observation {
  silo: string;
  epoch: string;
  view?: string;
  /** Why it was asked: "asker", "slot-owner", "holder". */
  role: string;
  tookMs: number;
  missing?: string;
  suspect?: boolean;
  lastPongMs?: number;
  slot?: { number: number; settled: boolean; waiting?: string[]; entry?: Holder; releasedMsAgo?: number };
  claim?: { registration: number; node: boolean; phase: string; round: number; landed: string; tries: number };
  serving?: boolean;
  hub?: Json;
  recent?: Incident[];
}

/** What a process has observed of one address. */
export interface Why {
  address: string;
  answeredBy: string;
  observedAt: string;
  kind: string;
  /** The diagnosis on one line. */
  clause: string;
  hub?: { kind: string; runLevel: string; gates?: string; queue: number; deferred: number; executing?: string; forMs?: number; handled: number; initError?: string };
  activation?: string;
  /** Which bound would fire, in the order of their size. */
  bounds: { name: string; ms: number; for: string }[];
  cluster?: {
    askedBy: string;
    view: string;
    slotOwner?: string;
    owner?: Holder;
    ownerReport?: Json;
    answered: string[];
    /** Those that did not answer, each with the reason. */
    missing: string[];
    observations: Observation[];
  };
  lapses?: Json[];
}

export type DemoSiloState = "starting" | "up" | "frozen" | "killed" | "leaving" | "left" | "failed";
export type DemoAction = "kill" | "freeze" | "thaw" | "restart" | "leave" | "cut" | "heal";

/** A silo of `hubmesh demo`, seen from outside. */
export interface DemoSilo {
  name: string;
  state: DemoSiloState;
  since: string;
  /** Of one that failed. */
  why?: string;
  /** Its own HTTP server; "" when it has none now. */
  url: string;
  ready: boolean;
  waiting: string[];
  /** What the front door has sent to it, streams that are open now, and attempts that failed. */
  front: { requests: number; streams: number; failed: number };
  /** As last observed: one that is frozen or killed keeps its last. */
  status: SiloStatus | null;
  statusAt: string;
}

export interface DemoLink {
  a: string;
  b: string;
  cut: boolean;
}

export interface DemoEvent {
  seq: number;
  at: string;
  silo: string;
  kind: "action" | "log";
  level: "info" | "warn" | "error";
  text: string;
}

export interface DemoState {
  at: string;
  /** The node that the demo is about, and the silos whose process has a hub at it now. */
  node: { path: string; servedBy: string[] };
  silos: DemoSilo[];
  links: DemoLink[];
  /** The newest, oldest first. */
  events: DemoEvent[];
}
