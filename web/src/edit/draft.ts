import { diff, words } from "../text/diff.ts";
import { merge3 } from "../text/merge3.ts";

/**
 * What is being edited, as a pure state machine. Each field has the server's text that the local text
 * grew from (its base); local text that differs from it is dirty. A save is conditional on the version
 * that the bases are of: one that would replace what somebody else wrote meanwhile is refused by the
 * server, his text is merged, and the save goes again. So every merge has its true base, and nothing
 * that anybody added is lost. Saves are one at a time; frames that arrive while one is under way wait
 * for its answer, because only the answer tells which version is our own. Where the answer is lost, the
 * save may have become the very next version, or may still become it: what that version holds tells, and
 * nothing is merged before it is known. Otherwise an own text would come back as another's and stand there twice.
 */
export interface Draft {
  readonly fields: Readonly<Record<string, Field>>;
  /** The latest version of the node that the bases hold. */
  readonly version: number;
  /** What is being saved, by field; undefined when nothing is. */
  readonly saving: Sent | undefined;
  /** Saves on this version whose answers were lost: one of them may be the next version. */
  readonly lost: readonly Sent[];
  /** Versions that wait until it is known which one is our own: the next one and the newest, in order. */
  readonly waiting: readonly Remote[];
  /** Edits so far, and those of them that the server is known to hold. */
  readonly edits: number;
  readonly acknowledged: number;
  /** Stretches, since the draft began, where another's change gave way to a local one. */
  readonly conflicts: number;
}

export interface Field {
  readonly base: string;
  readonly local: string;
  /** Whether two texts mean the same; for JSON, formatting does not count. */
  readonly same: (a: string, b: string) => boolean;
}

export type Values = Readonly<Record<string, string>>;
export interface Sent {
  readonly values: Values;
  /** The edits that they contain. */
  readonly edits: number;
}
export interface Remote {
  readonly version: number;
  readonly values: Values;
}

export const sameText = (a: string, b: string): boolean => a === b;

export function newDraft(version: number, fields: Record<string, { text: string; same?: Field["same"] }>): Draft {
  const entries = Object.entries(fields).map(([name, { text, same }]) => [name, { base: text, local: text, same: same ?? sameText }] as const);
  return { fields: Object.fromEntries(entries), version, saving: undefined, lost: [], waiting: [], edits: 0, acknowledged: 0, conflicts: 0 };
}

export function edit(draft: Draft, name: string, text: string): Draft {
  const field = draft.fields[name];
  if (field === undefined) return draft;
  return counted({ ...draft, edits: draft.edits + 1, fields: { ...draft.fields, [name]: { ...field, local: text } } });
}

/** The local texts that differ from their base. */
export function dirtyValues(draft: Draft): Values {
  return Object.fromEntries(Object.entries(draft.fields).filter(([, f]) => !f.same(f.base, f.local)).map(([name, f]) => [name, f.local]));
}

export function isDirty(draft: Draft): boolean {
  return Object.values(draft.fields).some((field) => !field.same(field.base, field.local));
}

/** A save of these values is under way. */
export function saveStarted(draft: Draft, values: Values): Draft {
  return { ...draft, saving: { values, edits: draft.edits } };
}

/** A version of the node that someone wrote, or the echo of an own save. */
export function remoteArrived(draft: Draft, remote: Remote): Draft {
  if (remote.version <= draft.version) return draft;
  if (draft.saving !== undefined || (draft.lost.length > 0 && remote.version > draft.version + 1)) return wait(draft, remote);
  const sent = draft.lost.find(({ values }) => holds(draft, remote.values, values));
  const settled = { ...draft, lost: [] };
  return drained(sent === undefined ? mergeIn(settled, remote) : own(settled, remote, sent));
}

/** The save was acknowledged as this version with these values. */
export function saveAnswered(draft: Draft, answer: Remote): Draft {
  const sent = draft.saving ?? { values: {}, edits: draft.acknowledged };
  const settled = { ...draft, saving: undefined, lost: answer.version > draft.version ? [] : draft.lost };
  return drained(own(settled, answer, sent));
}

/** The save was refused: what was dirty is dirty still, and what waited is merged. */
export function saveFailed(draft: Draft): Draft {
  return drained({ ...draft, saving: undefined });
}

/** The answer of the save was lost, or is not to be trusted: it may have been stored, or may be yet. */
export function saveLost(draft: Draft): Draft {
  return drained({ ...draft, saving: undefined, lost: draft.saving === undefined ? draft.lost : [...draft.lost.slice(1 - maxLost), draft.saving] });
}

/** Saves with a lost answer that are remembered, the latest ones. */
const maxLost = 16;

/** The version that has to be read before what waits can be merged; undefined when nothing waits for one. */
export function missingVersion(draft: Draft): number | undefined {
  return draft.saving === undefined && draft.lost.length > 0 && draft.waiting.length > 0 ? draft.version + 1 : undefined;
}

/** The missing version can not be read: what came after it grew from the text that it is nearest to. */
export function assumeNearest(draft: Draft): Draft {
  const newest = draft.waiting.at(-1);
  if (newest === undefined) return draft;
  const changes = (from: (name: string) => string, names: Values): number => Object.keys(names).reduce((sum, name) => {
    const hunks = diff(words(from(name)), words(newest.values[name] ?? ""));
    return sum + hunks.reduce((n, { a0, a1, b0, b1 }) => n + (a1 - a0) + (b1 - b0), 0);
  }, 0);
  const gain = (sent: Sent): number => changes((name) => draft.fields[name]?.base ?? "", sent.values) - changes((name) => sent.values[name] ?? "", sent.values);
  const best = draft.lost.reduce((a, b) => (gain(b) > gain(a) ? b : a));
  const settled = { ...draft, lost: [] };
  return drained(gain(best) > 0 ? own(settled, { version: draft.version + 1, values: best.values }, best) : settled);
}

function wait(draft: Draft, remote: Remote): Draft {
  const all = [...draft.waiting.filter(({ version }) => version !== remote.version), remote].sort((a, b) => a.version - b.version);
  return { ...draft, waiting: all.filter(({ version }, i) => version === draft.version + 1 || i === all.length - 1) };
}

/** Merges what waited, as far as that is possible now. */
function drained(draft: Draft): Draft {
  const { waiting } = draft;
  return counted(waiting.reduce(remoteArrived, { ...draft, waiting: [] }));
}

/** With nothing to save and nothing in doubt every edit is there. */
function counted(draft: Draft): Draft {
  const all = draft.saving === undefined && draft.lost.length === 0 && draft.acknowledged < draft.edits && !isDirty(draft);
  return all ? { ...draft, acknowledged: draft.edits } : draft;
}

/** Whether a version holds what was sent. */
function holds(draft: Draft, values: Values, sent: Values): boolean {
  return Object.entries(sent).every(([name, text]) => draft.fields[name]?.same(values[name] ?? "", text) === true);
}

function mergeIn(draft: Draft, remote: Remote): Draft {
  let { conflicts } = draft;
  const fields = mapFields(draft, (field, name) => {
    const text = remote.values[name];
    if (text === undefined || field.same(field.base, text)) return field;
    if (field.same(field.base, field.local)) return { ...field, base: text, local: text };
    if (field.same(field.local, text)) return { ...field, base: text };
    const merged = merge3(field.base, field.local, text);
    conflicts += merged.conflicts;
    return { ...field, base: text, local: merged.text };
  });
  return { ...draft, fields, version: remote.version, conflicts };
}

/** An own version: fields that were sent get it as their base and keep their local text. */
function own(draft: Draft, answer: Remote, sent: Sent): Draft {
  const merged = mergeIn(draft, { version: Math.max(draft.version, answer.version), values: without(answer.values, sent.values) });
  const fields = mapFields(merged, (field, name) => {
    const text = sent.values[name];
    if (text === undefined) return field;
    const stored = answer.values[name];
    return { ...field, base: stored === undefined || field.same(text, stored) ? text : stored };
  });
  return { ...merged, fields, acknowledged: Math.max(merged.acknowledged, sent.edits) };
}

function without(values: Values, names: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => names[name] === undefined));
}

function mapFields(draft: Draft, change: (field: Field, name: string) => Field): Record<string, Field> {
  return Object.fromEntries(Object.entries(draft.fields).map(([name, field]) => [name, change(field, name)]));
}
