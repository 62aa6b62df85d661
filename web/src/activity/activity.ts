import { isObject, type Json, type MeshNode } from "@hubmesh/client";

export interface ActivityView {
  title: string;
  /** The latest line of its progress; "" when there is none. */
  message: string;
  /** Such as "1,200 of 3,000"; "" when it does not count. */
  counted: string;
  /** From 0 to 1; undefined when it does not say. */
  fraction: number | undefined;
  cancelling: boolean;
  /** Where its work shows: the node that it belongs to. */
  subject: string;
}

/** What an activity node says about its progress. It reads what is there and does not insist on a shape. */
export function activityView(node: MeshNode): ActivityView {
  const content = isObject(node.content) ? node.content : {};
  const progress = isObject(content["progress"]) ? content["progress"] : content;
  const done = numberOf(progress["done"]) ?? numberOf(progress["current"]) ?? numberOf(progress["processed"]);
  const total = numberOf(progress["total"]);
  const direct = numberOf(content["progress"]) ?? numberOf(progress["fraction"]);
  const fraction = done !== undefined && total !== undefined && total > 0 ? done / total : direct;
  const counted = done === undefined ? "" : total === undefined || total === 0 ? (done === 0 ? "" : `${count(done)} done`) : `${count(done)} of ${count(total)}`;
  return {
    title: textOf(content["title"]) || textOf(content["name"]) || node.name || node.id,
    message: textOf(progress["message"]) || textOf(content["message"]) || lastMessage(content["messages"]),
    counted,
    fraction: fraction === undefined ? undefined : Math.min(1, Math.max(0, fraction)),
    cancelling: textOf(content["requestedStatus"]) !== "",
    subject: node.mainNode !== undefined && node.mainNode !== node.path ? node.mainNode : node.path,
  };
}

function lastMessage(messages: Json | undefined): string {
  if (!Array.isArray(messages)) return "";
  const last = messages.at(-1);
  if (isObject(last)) return textOf(last["text"]) || textOf(last["message"]);
  return textOf(last);
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

function numberOf(value: Json | undefined): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

const numbers = new Intl.NumberFormat("en");
function count(n: number): string {
  return numbers.format(n);
}
