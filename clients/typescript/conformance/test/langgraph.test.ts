// The store of LangGraph: beside LangGraph's own store in memory, in a graph, and with items of the Python client.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";

import { Embeddings } from "@langchain/core/embeddings";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import type { BaseStore, Operation } from "@langchain/langgraph-checkpoint";
import { InMemoryStore, InvalidNamespaceError } from "@langchain/langgraph-checkpoint";
import { InvalidArgumentError, MemoryClient } from "@memory-service/client";
import { MemoryServiceStore } from "@memory-service/client/langgraph";

import { Server, skip } from "../../test/server.js";

/** Counts letters: similar texts have similar vectors. */
class Letters extends Embeddings {
  constructor() {
    super({});
  }

  async embedQuery(text: string): Promise<number[]> {
    return [..."abcdefghijklmnopqrstuvwxyz"].map((letter) => text.toLowerCase().split(letter).length - 1);
  }

  async embedDocuments(texts: string[]): Promise<number[][]> {
    return Promise.all(texts.map((text) => this.embedQuery(text)));
  }
}

const FIELDS = ["text", "chapters[*].title", "tags[-1]"];

describe("the store of LangGraph", { skip, timeout: 150_000 }, () => {
  let server: Server;
  let memory: MemoryClient;
  let store: MemoryServiceStore;
  let count = 0;

  before(async () => {
    server = await Server.start("--embedder", "none");
  });

  beforeEach(() => {
    count += 1;
    memory = new MemoryClient(server.address, { namespace: `langgraph-${count}` });
    store = new MemoryServiceStore(memory);
  });

  after(async () => {
    memory.close();
    await server.remove();
  });

  /** Checks that a question has the same answer from this store and from LangGraph's own. */
  async function same(own: InMemoryStore, ask: (store: BaseStore) => Promise<unknown>): Promise<void> {
    assert.deepEqual(plain(await ask(store)), plain(await ask(own)), ask.toString());
  }

  test("put, get, replace and delete", async () => {
    await store.put(["users", "ada"], "tea", { text: "Ada likes tea", nested: { list: [1, 2.5, null, "ä"] } });
    const first = await store.get(["users", "ada"], "tea");
    assert.deepEqual(first?.value, { text: "Ada likes tea", nested: { list: [1, 2.5, null, "ä"] } });
    assert.deepEqual([first?.namespace, first?.key], [["users", "ada"], "tea"]);
    await store.put(["users", "ada"], "tea", { text: "green" });
    const second = await store.get(["users", "ada"], "tea");
    assert.deepEqual(second?.value, { text: "green" });
    assert.deepEqual(second?.createdAt, first?.createdAt);
    assert.ok(second!.updatedAt >= first!.updatedAt && second!.updatedAt instanceof Date);
    assert.equal(await store.get(["users"], "tea"), null);
    await store.delete(["users", "ada"], "tea");
    await store.delete(["users", "ada"], "tea");
    assert.equal(await store.get(["users", "ada"], "tea"), null);
  });

  test("filters, prefixes and namespaces are as in LangGraph's store in memory", async () => {
    const own = new InMemoryStore();
    for (const each of [own, store] as const) {
      for (let index = 0; index < 12; index += 1) {
        const value = { n: index, odd: index % 2 === 1, name: `n${index}`, "a.b": { c: [index % 3] } };
        await each.put(["docs", `d${index % 3}`, index % 2 ? "v1" : "v2"], `k${index}`, value);
      }
      await each.put(["docs"], "top", { n: 100 });
      await each.put(["docsother", "v1"], "k", { n: 200 });
      await each.delete(["docsother", "v1"], "none");
    }
    const filters: Record<string, unknown>[] = [
      { odd: true },
      { n: 3 },
      { n: { $gte: 3, $lt: 7 } },
      { name: { $in: ["n1", "n5"] } },
      { name: { $nin: ["n1", "n5"] }, odd: true },
      { n: { $ne: 4 } },
      { name: "n*" },
      { missing: 1 },
      { n: { $gt: -1.5e-7 } },
    ];
    for (const filter of filters) {
      await same(own, async (each) => sorted(await each.search(["docs"], { filter, limit: 100 })));
    }
    for (const prefix of [[], ["docs"], ["docs", "d1"], ["docs", "d1", "v1"], ["doc"]]) {
      await same(own, async (each) => sorted(await each.search(prefix, { limit: 100 })));
      for (const maxDepth of [undefined, 1, 2, 3, 9]) {
        await same(own, (each) => each.listNamespaces({ prefix, ...(maxDepth === undefined ? {} : { maxDepth }) }));
      }
    }
    await same(own, (each) => each.listNamespaces({ suffix: ["v1"] }));
    await same(own, (each) => each.listNamespaces({ suffix: ["v1"], prefix: ["docs"], maxDepth: 2 }));
    await same(own, (each) => each.listNamespaces({ prefix: ["docs", "*", "v1"] }));
    await same(own, (each) => each.listNamespaces({ limit: 3, offset: 2 }));
    assert.equal((await store.search(["docs"], { limit: 5, offset: 10 })).length, 3);
    await assert.rejects(store.search(["docs"], { filter: { 'a"b': 1 } }), InvalidArgumentError);
    await assert.rejects(store.search(["docs"], { filter: { a: { $regex: "x" } } }), InvalidArgumentError);
  });

  test("a batch reads before it writes, and writes all or nothing", async () => {
    await store.put(["a"], "k", { old: true });
    const operations: Operation[] = [
      { namespace: ["a"], key: "k", value: { old: false } },
      { namespace: ["a"], key: "k" },
      { namespacePrefix: ["a"] },
      { namespace: ["b"], key: "k", value: { n: 1 } },
      { namespace: ["b"], key: "k", value: null },
      { matchConditions: [], limit: 10, offset: 0 },
    ];
    const results: readonly unknown[] = await store.batch(operations);
    assert.deepEqual(plain(results[1]), { namespace: ["a"], key: "k", value: { old: true } });
    assert.equal((results as unknown[][])[2]?.length, 1);
    assert.deepEqual(results[5], [["a"]]);
    assert.deepEqual((await store.get(["a"], "k"))?.value, { old: false });
    assert.equal(await store.get(["b"], "k"), null);

    const bad = { namespace: ["c"], key: "bad", value: { when: new Date() } };
    const good = { namespace: ["c"], key: "good", value: { n: 1 } };
    await assert.rejects(store.batch([good, bad]), InvalidArgumentError);
    assert.equal(await store.get(["c"], "good"), null);
    await assert.rejects(store.put([], "k", {}), InvalidNamespaceError);
    await assert.rejects(store.batch([{ namespace: ["a", ""], key: "k", value: {} }]), InvalidNamespaceError);
  });

  test("many items in one batch", async () => {
    const puts = Array.from({ length: 1500 }, (_, n) => ({ namespace: ["many"], key: `k${n}`, value: { n } }));
    await store.batch(puts);
    const got = await store.batch(puts.map(({ namespace, key }) => ({ namespace, key })));
    assert.deepEqual(got.map((item) => item?.value["n"]), puts.map(({ value }) => value.n));
  });

  test("a query finds words of the indexed fields, and without a model nothing else", async () => {
    const indexed = new MemoryServiceStore(memory, { index: { fields: FIELDS } });
    await indexed.put(["n"], "a", { text: "the harbour of Lisbon", secret: "mountain" });
    await indexed.put(["n"], "b", { chapters: [{ title: "A mountain" }, { title: "A lake" }], tags: ["x", "river"] });
    await indexed.put(["n"], "c", { text: "mountain" }, false);
    const keys = async (query: string, limit = 1) => (await indexed.search(["n"], { query, limit })).map(({ key }) => key);
    assert.deepEqual(await keys("mountain"), ["b"]);
    assert.deepEqual(await keys("harbour"), ["a"]);
    assert.deepEqual(await keys("river"), ["b"]);
    assert.deepEqual(await keys("mountain", 10), ["b", "c"]);
  });

  test("vectors of a model order as in LangGraph's store in memory", async () => {
    const index = { dims: 26, embeddings: new Letters(), fields: ["text", "chapters[*].title"] };
    const own = new InMemoryStore({ index });
    store = new MemoryServiceStore(memory, { index });
    for (const each of [own, store] as const) {
      await each.put(["v"], "one", { text: "green tea", chapters: [{ title: "xylophone" }, { title: "quartz" }] });
      await each.put(["v"], "two", { text: "black coffee" });
      await each.put(["v"], "three", { text: "zebra" });
      await each.put(["v"], "three", { text: "a tree" });
    }
    for (const query of ["quartz", "tea", "coffee", "tree"]) {
      const ask = async (each: BaseStore) => {
        const found = await each.search(["v"], { query, limit: 3 });
        return found.map(({ key, score }) => [key, score?.toFixed(4)]);
      };
      await same(own, ask);
    }
    await store.delete(["v"], "one");
    assert.equal((await memory.retrieve({ limit: -1 })).length, 2, "the vectors of a deleted item are deleted");
  });

  test("a graph uses the store", async () => {
    const State = Annotation.Root({ heard: Annotation<string>, known: Annotation<string[]> });
    const node = async (state: typeof State.State, { store: given }: LangGraphRunnableConfig) => {
      const before = await given!.search(["facts"]);
      await Promise.all([given!.put(["facts"], state.heard, { text: state.heard }), given!.get(["facts"], "none")]);
      return { known: before.map(({ key }) => key) };
    };
    const graph = new StateGraph(State).addNode("node", node).addEdge(START, "node").compile({ store });
    assert.deepEqual((await graph.invoke({ heard: "tea" })).known, []);
    assert.deepEqual((await graph.invoke({ heard: "cake" })).known, ["tea"]);
  });

  test("items are those of the Python client", async () => {
    // As `MemoryServiceStore(...).put(("users", "kim ä😀"), 'a"b\\\x7f', {"text": "tea", "n": 1})` writes it in Python.
    const id = "langgraph_f8760b3f634f2ca807ad12575f58debe23b33f2d4f6ec8a286b1a07a78248199";
    const path = "\x1fusers\x1fkim ä😀\x1f";
    const labels = {
      langgraph: path,
      langgraph_0: "\x1f",
      langgraph_1: "\x1fusers\x1f",
      langgraph_2: path,
      langgraph_depth_2: path,
      langgraph_indexed_0: "\x1f",
      langgraph_indexed_1: "\x1fusers\x1f",
      langgraph_indexed_2: path,
    };
    await store.put(["users", "kim ä😀"], 'a"b\\\x7f', { text: "tea", n: 1 });
    const written = await memory.get(id);
    assert.deepEqual(written.labels, labels);
    assert.deepEqual(written.metadata, { key: 'a"b\\\x7f' });
    assert.deepEqual(written.content, { type: "data", data: { value: { text: "tea", n: 1 } } });
  });
});

function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, each) => (key === "createdAt" || key === "updatedAt" ? undefined : each)) ?? "null",
  );
}

function sorted<T extends { readonly key: string }>(found: readonly T[]): T[] {
  return [...found].sort((a, b) => (a.key < b.key ? -1 : 1));
}
