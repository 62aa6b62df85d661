import { merge3 } from "../text/merge3.ts";

/**
 * What is being edited, as a pure state machine. Each field has the server's text that the local text
 * grew from (its base); local text that differs from it is dirty. A save is conditional on the version
 * that the bases are of: one that would replace what somebody else wrote meanwhile is refused by the
 * server, his text is merged, and the save goes again. So every merge has its true base, and nothing
 * that anybody added is lost. Saves are one at a time; frames that arrive while one is under way wait
 * for its answer, because only the answer tells which version is our own.
 */
export interface Draft {
  readonly fields: Readonly<Record<string, Field>>;
  /** The latest version of the node that the bases hold. */
  readonly version: number;
  /** What is being saved, by field; undefined when nothing is. */
  readonly saving: Values | undefined;
  readonly waiting: readonly Remote[];
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
export interface Remote {
  readonly version: number;
  readonly values: Values;
}

export const sameText = (a: string, b: string): boolean => a === b;

export function newDraft(version: number, fields: Record<string, { text: string; same?: Field["same"] }>): Draft {
  const entries = Object.entries(fields).map(([name, { text, same }]) => [name, { base: text, local: text, same: same ?? sameText }] as const);
  return { fields: Object.fromEntries(entries), version, saving: undefined, waiting: [], conflicts: 0 };
}

export function edit(draft: Draft, name: string, text: string): Draft {
  const field = draft.fields[name];
  return field === undefined ? draft : { ...draft, fields: { ...draft.fields, [name]: { ...field, local: text } } };
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
  return { ...draft, saving: values };
}

/** A version of the node that someone wrote, or the echo of an own save. */
export function remoteArrived(draft: Draft, remote: Remote): Draft {
  if (draft.saving !== undefined) return { ...draft, waiting: [...draft.waiting, remote] };
  return remote.version <= draft.version ? draft : mergeIn(draft, remote);
}

/** The save was acknowledged as this version with these values. */
export function saveAnswered(draft: Draft, answer: Remote): Draft {
  const sent = draft.saving ?? {};
  const later = draft.waiting.filter((remote) => remote.version > answer.version);
  return later.reduce(remoteArrived, own({ ...draft, saving: undefined, waiting: [] }, answer, sent));
}

/** The save was refused or failed: what was dirty is dirty still, and what waited is merged. */
export function saveFailed(draft: Draft): Draft {
  const { waiting } = draft;
  return waiting.reduce(remoteArrived, { ...draft, saving: undefined, waiting: [] });
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
function own(draft: Draft, answer: Remote, sent: Values): Draft {
  const merged = mergeIn(draft, { version: Math.max(draft.version, answer.version), values: without(answer.values, sent) });
  const fields = mapFields(merged, (field, name) => {
    const text = sent[name];
    if (text === undefined) return field;
    const stored = answer.values[name];
    return { ...field, base: stored === undefined || field.same(text, stored) ? text : stored };
  });
  return { ...merged, fields };
}

function without(values: Values, names: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => names[name] === undefined));
}

function mapFields(draft: Draft, change: (field: Field, name: string) => Field): Record<string, Field> {
  return Object.fromEntries(Object.entries(draft.fields).map(([name, field]) => [name, change(field, name)]));
}
