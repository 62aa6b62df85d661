import type { ClusterStatus, DemoLink, DemoSilo, DemoState, Observation, SiloStatus, Why } from "@hubmesh/client";
import { describe, expect, it } from "vitest";
import { duration, happened, judged, shortEpoch, total } from "../src/cluster/model.ts";
import { Figures, maxLatencies, median } from "../src/demo/figures.ts";
import { actsOf, complete, incidentsOf, isCutOff, missingOf, ownerOf, textOf } from "../src/demo/model.ts";
import { keys, maxChars, typed } from "../src/demo/robot.ts";

function silo(name: string, state: DemoSilo["state"]): DemoSilo {
  return { name, state, since: "", url: "", ready: true, waiting: [], front: { requests: 0, streams: 0, failed: 0 }, status: null, statusAt: "" };
}
const links = (...cut: string[]): DemoLink[] => ["s1 s2", "s1 s3", "s2 s3"].map((pair) => ({ a: pair.slice(0, 2), b: pair.slice(3), cut: cut.includes(pair) }));

describe("what becomes of the keys", () => {
  it("is counted from what was edited and what the server is known to hold", () => {
    const figures = new Figures();
    figures.count(3, 0, 1000);
    figures.count(5, 2, 1400);
    expect([figures.typed, figures.saved, figures.unsaved, figures.longest(1400)]).toEqual([5, 2, 3, 400]);
    figures.count(5, 5, 2000);
    expect([figures.unsaved, figures.longest(2000)]).toEqual([0, 1000]);
  });

  it("is told with a key that still waits, and forgotten after a minute", () => {
    const figures = new Figures();
    figures.count(1, 0, 0);
    expect(figures.longest(7000)).toBe(7000);
    figures.count(1, 1, 9000);
    expect([figures.longest(60_000), figures.longest(69_999), figures.longest(71_000)]).toEqual([9000, 9000, 0]);
    figures.count(2, 1, 200_000);
    figures.count(2, 2, 200_100);
    expect(figures.longest(200_100)).toBe(100);
  });

  it("is kept for any number of keys", () => {
    const figures = new Figures();
    for (let n = 1; n <= 10_000; n++) figures.count(n, Math.max(0, n - 7), n * 60);
    expect([figures.typed, figures.saved, figures.unsaved, figures.longest(600_000)]).toEqual([10_000, 9_993, 7, 420]);
  });

  it("counts no key twice when an edit took one back", () => {
    const figures = new Figures();
    figures.count(4, 4, 10);
    figures.count(4, 4, 20);
    expect([figures.typed, figures.saved]).toEqual([4, 4]);
  });

  it("keeps the latest latencies", () => {
    const figures = new Figures();
    for (let n = 0; n < 200; n++) figures.save(n);
    expect([figures.latencies.length, figures.latencies.at(-1), median([3, 1, 2]), median([])]).toEqual([maxLatencies, 199, 2, 0]);
  });
});

describe("the robot", () => {
  it("types the same words each time, and takes old lines away before the text grows too large", () => {
    const start = (n: number): string => {
      const robot = keys();
      let text = "";
      for (let i = 0; i < n; i++) text = typed(text, robot.next().value);
      return text;
    };
    expect(start(30)).toBe(start(31).slice(0, 30));
    expect(start(2000)).toMatch(/^A silo can die .*\.\n/);
    const long = start(20_000);
    expect(long.length).toBeLessThanOrEqual(maxChars + 1);
    expect(start(20_001).endsWith(long.slice(-100) + start(20_001).slice(-1))).toBe(true);
  });
});

describe("what can be done to a silo", () => {
  const enabled = (state: DemoSilo["state"], ...cut: string[]): string[] => actsOf(silo("s1", state), links(...cut)).filter((act) => act.enabled).map((act) => act.action);

  it("is what its state allows", () => {
    expect(enabled("up")).toEqual(["kill", "freeze", "cut", "leave"]);
    expect(enabled("frozen")).toEqual(["kill", "thaw", "cut"]);
    expect(enabled("starting")).toEqual(["kill"]);
    expect(enabled("leaving")).toEqual([]);
    for (const state of ["killed", "left", "failed"] as const) expect(enabled(state)).toEqual(["restart"]);
  });

  it("is to heal it when all its links are cut", () => {
    expect(enabled("up", "s1 s2", "s1 s3")).toContain("heal");
    expect([isCutOff("s1", links("s1 s2", "s1 s3")), isCutOff("s2", links("s1 s2", "s1 s3")), isCutOff("s1", [])]).toEqual([true, false, false]);
  });

  it("is at the same place in every state", () => {
    for (const state of ["up", "frozen", "killed", "starting"] as const) expect(actsOf(silo("s1", state), links()).length).toBe(4);
  });

  it("has one owner to show: the one that is up, where two have a hub", () => {
    const state = (servedBy: string[]): DemoState => ({ at: "", node: { path: "Demo/Page", servedBy }, silos: [silo("s1", "frozen"), silo("s2", "up")], links: [], events: [] });
    expect([ownerOf(state(["s1", "s2"])), ownerOf(state(["s1"])), ownerOf(state([]))]).toEqual(["s2", "s1", undefined]);
  });
});

describe("a state of the demo", () => {
  it("has its lists, also where an empty one came as null", () => {
    const bare = { at: "", node: { path: "a", servedBy: null }, silos: [{ name: "s1", state: "up", waiting: null, status: undefined }], links: null, events: null } as unknown as DemoState;
    expect(complete(bare)).toMatchObject({ node: { servedBy: [] }, silos: [{ waiting: [], status: null }], links: [], events: [] });
  });
});

describe("an event", () => {
  const event = (kind: "action" | "log", text: string) => textOf({ seq: 1, at: "", silo: "s2", kind, level: "info", text });

  it("says what was done, and a log line without what its place says", () => {
    expect([event("action", "kill"), event("action", "cut s1 – s2"), event("log", "kill")]).toEqual(["killed", "cut s1 – s2", "kill"]);
    expect(event("log", "A view counts silo=s2 epoch=d7a324e39672755a view=1.4 [s2/d7a324e39672755a]")).toBe("A view counts epoch=72755a view=1.4 [s2/72755a]");
  });
});

describe("an answer to why", () => {
  it("tells each incident once, the latest first, with who saw it", () => {
    const seen = (name: string, role: string, ...agoMs: number[]): Observation => ({ silo: name, epoch: "1", role, tookMs: 1, recent: agoMs.map((ms) => ({ agoMs: ms, what: "refused" })) });
    const why = { cluster: { observations: [seen("s1", "asker", 40, 900), seen("s1", "slot-owner", 40, 900), seen("s2", "holder", 300)] } } as unknown as Why;
    expect(incidentsOf(why).map((i) => `${i.agoMs} ${i.seenBy}`)).toEqual(["40 s1", "300 s2", "900 s1"]);
    expect(incidentsOf({} as Why)).toEqual([]);
  });

  it("is read in its parts", () => {
    expect([missingOf("s2: no answer: late"), missingOf("s2"), missingOf("s2: silo s2 did not answer")]).toEqual([{ silo: "s2", reason: "no answer: late" }, { silo: "s2", reason: "" }, { silo: "s2", reason: "did not answer" }]);
  });
});

describe("the cluster", () => {
  it("sums up, and leaves out what never happened", () => {
    expect([total({ a: 1, b: 2 }), total({}), happened({ a: 1, b: 0, c: 3 })]).toEqual([3, 0, [["c", 3], ["a", 1]]]);
  });

  it("tells who suspects a silo, and that it leaves, as the others judge", () => {
    const by = (name: string, members: SiloStatus["members"]) => ({ silo: name, epoch: name, tookMs: 1, status: { phase: "up", members } as unknown as SiloStatus });
    const suspected = { silo: "s2", epoch: "s2", addr: "", suspect: true, leaving: true };
    const status = { silos: [by("s1", [suspected]), by("s2", [suspected]), by("s3", [{ ...suspected, suspect: false }])] } as unknown as ClusterStatus;
    expect(judged(status, status.silos[1] as ClusterStatus["silos"][number])).toEqual({ suspectedBy: ["s1"], leaving: true });
    expect(judged(status, status.silos[0] as ClusterStatus["silos"][number])).toEqual({ suspectedBy: [], leaving: false });
  });

  it("writes epochs and lengths of time for people", () => {
    expect([shortEpoch("0000000000000000"), shortEpoch("00000000001a2b3c")]).toEqual(["none", "1a2b3c"]);
    expect([duration(0.4), duration(340), duration(1200), duration(12_300), duration(200_000), duration(9e6)]).toEqual(["0 ms", "340 ms", "1.2 s", "12 s", "3 min", "3 h"]);
  });
});
