import { ExactNumber } from "./json.ts";
import type { Json, JsonObject } from "./types.ts";

/** RFC 7396 merge patches. Values are never changed in place; what a patch leaves alone is shared. */

export function isObject(value: unknown): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof ExactNumber);
}

/** Applies a merge patch. Both arguments stay as they are. */
export function applyMergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const members = new Map<string, Json>(isObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) members.delete(key);
    else members.set(key, applyMergePatch(members.get(key), value));
  }
  // fromEntries defines own members, so that a key such as "__proto__" stays data.
  return Object.fromEntries(members);
}

/** Deep equality of JSON values; the order of members does not matter. */
export function equalJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (a instanceof ExactNumber && b instanceof ExactNumber) return a.toString() === b.toString();
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => equalJson(item, b[i]));
  }
  if (isObject(a) && isObject(b)) {
    const keys = Object.keys(a);
    return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && equalJson(a[key], b[key]));
  }
  return false;
}

/**
 * The merge patch that turns `from` into `to`: `{}` when nothing changes, undefined when a merge patch
 * can not say the change (it can not set a member to null).
 */
export function diffMergePatch(from: Json | undefined, to: Json): Json | undefined {
  if (!isObject(to)) return to;
  const source = isObject(from) ? from : undefined;
  const members: [string, Json][] = [];
  if (source !== undefined) {
    for (const key of Object.keys(source)) {
      if (!Object.hasOwn(to, key)) members.push([key, null]);
    }
  }
  for (const [key, value] of Object.entries(to)) {
    const held = source !== undefined && Object.hasOwn(source, key) ? source[key] : undefined;
    if (equalJson(held, value)) continue;
    if (value === null) return undefined;
    const patch = diffMergePatch(held, value);
    if (patch === undefined) return undefined;
    members.push([key, patch]);
  }
  return Object.fromEntries(members);
}
