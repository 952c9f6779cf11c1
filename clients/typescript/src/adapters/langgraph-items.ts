// Items of LangGraph as items of the server, as the Python client's `memory_client.langgraph` writes them.

import { createHash } from "node:crypto";

import type { Item, MatchCondition, PutOperation } from "@langchain/langgraph-checkpoint";
import { InvalidNamespaceError } from "@langchain/langgraph-checkpoint";

import type { MemoryItem, Vector } from "../items.js";
import type { JsonObject } from "../json.js";
import type { WriteOperation } from "../write-operations.js";

export const SEPARATOR = "\x1f";
/**
 * Label: the namespace of an item. Further labels are "langgraph_N", the path of its first N names, for searches by
 * prefix; "langgraph_indexed_N", likewise of items that queries find and of their parts; and "langgraph_depth_N", the
 * namespace again, if it has N names.
 */
export const PATH = "langgraph";
/** Label of an item with several vectors, and of the items that hold the others: the id of the first. */
export const PARTS_OF = "langgraph_parts_of";
export const UNINDEXED = "langgraph_unindexed";
const INDEX_BYTES_MAX = 65_536;

/**
 * Returns the operations that put or delete an item.
 *
 * @param texts - those by which queries find it
 * @param vectors - one for each text. Undefined: the store makes none
 */
export function operationsOf(
  put: PutOperation,
  texts: readonly string[],
  vectors: readonly Vector[] | undefined,
): WriteOperation[] {
  const id = idOf(put.namespace, put.key);
  if (put.value === null) {
    return [{ type: "delete", id, allowMissing: true }];
  }
  const path: readonly string[] = put.namespace;
  const prefixes = [...path, ""].map((_, depth) => [depth, pathOf(path.slice(0, depth))] as const);
  const byPrefix = (name: string) =>
    Object.fromEntries(prefixes.map(([depth, prefix]) => [`${name}_${depth}`, prefix]));
  const indexed: Record<string, string> = texts.length > 0 ? byPrefix(`${PATH}_indexed`) : {};
  const parts: Record<string, string> = (vectors?.length ?? 0) > 1 ? { [PARTS_OF]: id } : {};
  const unindexed: Record<string, string> = texts.length > 0 ? {} : { [UNINDEXED]: "true" };
  const own = { ...byPrefix(PATH), [PATH]: pathOf(path), [`${PATH}_depth_${path.length}`]: pathOf(path) };
  const common = {
    content: { type: "data", data: { value: put.value as JsonObject } },
    metadata: { key: put.key },
  } as const;
  const first = {
    ...common,
    id,
    labels: { ...own, ...indexed, ...parts, ...unindexed },
    index: shortened(texts[0] ?? ""),
    embedding: vectors?.[0],
  };
  const rest = (vectors?.slice(1) ?? []).map((embedding, number) => ({
    ...common,
    id: `${id}_${number}`,
    labels: { ...indexed, ...parts },
    index: shortened(texts[number + 1]!),
    embedding,
    provenance: { parentIds: [id] },
  }));
  const added = [first, ...rest].map((item) => ({ type: "add", item, onDuplicate: "replace" }) as const);
  // Deletes vectors that the item had before; it spares those that are added here.
  return vectors === undefined ? added : [...added, { type: "delete_where", labels: { [PARTS_OF]: id } }];
}

/** Returns the names, up to a wildcard, with which all paths that match begin. */
export function literalPrefix({ matchType, path }: MatchCondition): readonly string[] {
  const end = path.indexOf("*");
  return matchType === "prefix" ? path.slice(0, end < 0 ? undefined : end) : [];
}

/** Returns whether a namespace matches. */
export function matches({ matchType, path }: MatchCondition, names: readonly string[]): boolean {
  if (matchType !== "prefix" && matchType !== "suffix") {
    throw new Error(`Unsupported match type: ${matchType}`);
  }
  const start = matchType === "prefix" ? 0 : names.length - path.length;
  const isLongEnough = names.length >= path.length;
  return isLongEnough && path.every((name, index) => name === "*" || name === names[start + index]);
}

/** Returns names as one text. It begins with the text of their first names, and sorts as they do. */
export function pathOf(names: readonly string[]): string {
  for (const name of names) {
    if (typeof name !== "string" || name === "" || name.includes(SEPARATOR)) {
      throw new InvalidNamespaceError(`Invalid name in a namespace: ${JSON.stringify(name)}`);
    }
  }
  return names.length > 0 ? ["", ...names, ""].join(SEPARATOR) : SEPARATOR;
}

/** Returns the names of a path. */
export function namesOf(path: string): string[] {
  return path.split(SEPARATOR).slice(1, -1);
}

/** Returns the id of an item: the hash of the JSON of its names, as Python writes JSON. */
export function idOf(namespace: readonly string[], key: string): string {
  const names = [...namespace, key].map((name) => JSON.stringify(name).replace(/[^ -~]/g, escaped));
  return `langgraph_${createHash("sha256").update(`[${names.join(", ")}]`).digest("hex")}`;
}

function escaped(unit: string): string {
  return [...Array(unit.length).keys()]
    .map((index) => `\\u${unit.charCodeAt(index).toString(16).padStart(4, "0")}`)
    .join("");
}

function shortened(text: string): string {
  const bytes = Buffer.from(text);
  // With `stream`, a character that is cut in two is left out.
  const decode = () => new TextDecoder().decode(bytes.subarray(0, INDEX_BYTES_MAX), { stream: true });
  return bytes.length <= INDEX_BYTES_MAX ? text : decode();
}

/** Returns LangGraph's item. */
export function itemOf(item: MemoryItem): Item {
  const { content, labels, metadata, createTime = "", updateTime = "" } = item;
  return {
    namespace: namesOf(labels[PATH]!),
    key: metadata["key"] as string,
    value: content?.type === "data" ? (content.data["value"] as JsonObject) : {},
    createdAt: new Date(createTime),
    updatedAt: new Date(updateTime),
  };
}

/** Returns the texts at a path such as "chapters[*].title", "tags[-1]" or "$", which is the whole value. */
export function textsAt(value: unknown, path: string): string[] {
  const steps = path === "$" ? [] : (path.match(/[^.[\]]+/g) ?? []);
  const found = steps.reduce<unknown[]>((values, step) => values.flatMap((each) => inner(each, step)), [value]);
  return found
    .filter((each) => each !== null && each !== undefined)
    .map((each) => (typeof each === "string" ? each : JSON.stringify(each)));
}

function inner(value: unknown, step: string): unknown[] {
  if (value === null || typeof value !== "object") {
    return [];
  }
  if (step === "*") {
    return Object.values(value);
  }
  const found = Array.isArray(value) ? value.at(Number(step)) : (value as JsonObject)[step];
  return found === undefined ? [] : [found];
}
