// Items and states over a real server: what goes in comes out, page by page and all of it.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { chatMessage, data, MemoryClient, NotFoundError, text, toolCall, toolCallResult } from "../src/index.js";
import type { ChatMessage, Content, Found, MemoryItem, Result, StateEntry } from "../src/index.js";
import { Server, skip } from "./server.js";

const UNICODE = "Zoë 😀 日本語 \u202e e\u0301 \u0000 \n";

describe("items", { skip, timeout: 180_000 }, () => {
  let server: Server;
  let client: MemoryClient;
  let count = 0;

  /** Returns the client bound to an unused namespace. */
  const fresh = () => client.namespace(`fresh-${count++}`);

  before(async () => {
    server = await Server.start();
    client = new MemoryClient(server.address);
  });

  after(async () => {
    client.close();
    await server.remove();
  });

  test("all parts of a message return as they were sent", async () => {
    const message: ChatMessage = {
      type: "chat_message",
      role: "assistant",
      name: "Zoë 😀 日本語",
      messageId: "m-1",
      model: { provider: "openai", id: "gpt-5" },
      createTime: "2026-05-01T12:00:00.123456Z",
      parts: [
        { type: "text", text: UNICODE },
        { type: "data", data: { nested: { list: [1, "two", null, true, 0.5, {}] }, "": "no name" } },
        {
          type: "binary",
          content: new Uint8Array([0, 1, 254, 255]),
          mimeType: "image/png",
          name: "cat.png",
          url: "https://example.org/cat.png",
          contentLength: 4,
        },
        { type: "tool_call", name: "trains", toolCallId: "call_1", arguments: { to: "Paris", id: "9007199254740993" } },
        { type: "tool_call_result", name: "trains", toolCallId: "call_1", isError: true, result: ["none", null] },
      ],
    };
    const memory = fresh();
    const { id } = await memory.add(message, { sessionId: "trip" });
    const item = await memory.get(id);
    assert.deepEqual(item.content, message);
    assert.equal(item.speaker, message.name);
    assert.equal(item.sessionId, "trip");
  });

  test("empty and missing fields are told apart", async () => {
    const memory = fresh();
    const given: Content[] = [
      chatMessage("user", [{ type: "binary", name: "", url: "", contentLength: -1 }], { name: "" }),
      chatMessage("user", [{ type: "binary" }, toolCall("t", {}), toolCall("t")]),
      toolCallResult("t", null),
      { type: "tool_call_result", name: "t" },
      data({}),
    ];
    const written = await memory.batchAdd(given);
    const read = await Promise.all(written.map(({ id }) => memory.get(id)));
    const [named, bare, isNull, isMissing, empty] = read.map(({ content }) => content);
    assert.ok(named?.type === "chat_message" && bare?.type === "chat_message");
    const [file] = named.parts;
    assert.ok(file?.type === "binary");
    assert.deepEqual([named.name, file.name, file.url, file.contentLength], ["", "", "", -1]);
    assert.deepEqual([bare.name, bare.model, bare.createTime], [undefined, undefined, undefined]);
    const [noFile, noArguments, missingArguments] = bare.parts;
    assert.ok(noFile?.type === "binary");
    assert.deepEqual([noFile.name, noFile.url, noFile.contentLength], [undefined, undefined, undefined]);
    assert.deepEqual(noFile.content, new Uint8Array());
    assert.deepEqual(noArguments, toolCall("t", {}));
    assert.deepEqual(missingArguments, toolCall("t"));
    assert.ok(isNull?.type === "tool_call_result" && isNull.result === null);
    assert.ok(isMissing?.type === "tool_call_result" && isMissing.result === undefined);
    assert.deepEqual(empty, data({}));
  });

  test("every field of an item", async () => {
    const memory = fresh();
    const written = await memory.add("Ada likes tea", {
      id: "ünïq/1",
      sessionId: "s",
      createTime: new Date("2026-05-01T12:00:00.123Z"),
      expireTime: "2126-05-01T12:00:00.654321+02:00",
      labels: { topic: "drinks" },
      metadata: { a: [1, { b: null }] },
      embedding: new Float32Array([0.5, 0.25]),
    });
    assert.equal(written.createTime, "2026-05-01T12:00:00.123000Z");
    assert.equal(written.expireTime, "2126-05-01T10:00:00.654321Z");
    assert.deepEqual(written.labels, { topic: "drinks" });
    assert.deepEqual(written.metadata, { a: [1, { b: null }] });
    assert.equal(written.embedding, undefined);
    assert.equal(written.revision, 1);
    assert.deepEqual((await memory.get("ünïq/1", { includeEmbedding: true })).embedding, [0.5, 0.25]);
    const short = await memory.add("gone soon", { ttlMs: 60_000, embedding: [1, 0] });
    const lives = Date.parse(short.expireTime!) - Date.parse(short.updateTime!);
    assert.ok(Math.abs(lives - 60_000) < 1000, `${lives} ms`);
  });

  test("half a surrogate pair is refused rather than replaced", async () => {
    const memory = fresh();
    for (const half of ["\ud83d", "tea \udc00"]) {
      await assert.rejects(memory.add(half), { field: "content" });
      await assert.rejects(memory.add("tea", { metadata: { [half]: 1 } }), { field: "metadata" });
      await assert.rejects(memory.saveState("k", [half]), { field: "value[0]" });
      await assert.rejects(memory.importItems([{ content: half }]), { field: "records[0].content" });
    }
  });

  test("changes, one field at a time", async () => {
    const memory = fresh();
    const { id, revision } = await memory.add("one", { sessionId: "s", labels: { a: "b" }, ttlMs: 1e6 });
    const changed = await memory.update(id, { content: text("two") }, { expectedRevision: revision });
    assert.equal(changed.text, "two");
    assert.deepEqual(changed.labels, { a: "b" });
    assert.notEqual(changed.expireTime, undefined);
    const freed = await memory.update(id, { expireTime: null, labels: {}, sessionId: "", metadata: { x: 1 } });
    assert.equal(freed.expireTime, undefined);
    assert.deepEqual([freed.labels, freed.sessionId, freed.metadata], [{}, "", { x: 1 }]);
    assert.equal(await memory.delete(id, { expectedRevision: freed.revision }), freed.revision + 1);
    assert.deepEqual(await memory.reset(), { itemCount: 0, stateCount: 0, revision: freed.revision + 2 });
  });

  test("retrieval: query, filters, explanation, degradation", async () => {
    const memory = fresh();
    await memory.batchAdd([
      { content: "Ada drinks tea", sessionId: "s", labels: { topic: "drinks" }, createTime: "2026-01-01T00:00:00Z" },
      { content: "Trains leave at noon", sessionId: "t", createTime: "2026-02-01T00:00:00Z" },
      "The cat sleeps",
    ]);
    const found = await memory.retrieve("what does Ada drink?", { explain: true, limit: 2, mode: "hybrid" });
    assert.equal(found[0]?.text, "Ada drinks tea");
    assert.ok(found[0].score > 0);
    const shares = found[0].explanation.map((share) => share.contribution);
    assert.ok(Math.abs(shares.reduce((a, b) => a + b) - found[0].score) < 1e-9);
    assert.deepEqual([found.length, found.revision, [...found.degraded]], [2, 3, []]);
    const texts = async (results: Promise<Found<Result>>) => (await results).map((result) => result.text);
    assert.deepEqual(await texts(memory.retrieve({ sessionId: "t" })), ["Trains leave at noon"]);
    assert.deepEqual(await texts(memory.retrieve({ labels: { topic: "drinks" } })), ["Ada drinks tea"]);
    const january = { startTime: "2026-01-01T00:00:00Z", endTime: new Date("2026-02-01T00:00:00Z") };
    assert.deepEqual(await texts(memory.retrieve(january)), ["Ada drinks tea"]);
    assert.deepEqual(await texts(memory.retrieve("tea", { minScore: 0.5, mode: "lexical" })), ["Ada drinks tea"]);
    assert.deepEqual(await texts(memory.retrieve({ kinds: ["document"] })), []);
    assert.deepEqual(await texts(memory.retrieve({ limit: 0 })), []);
  });

  test("retrieval: filter expressions, weights, neighbours, budget, usage", async () => {
    const memory = fresh();
    const day = 86_400_000;
    const now = new Date("2026-06-10T12:00:00Z");
    const before = (days: number) => new Date(now.getTime() - days * day);
    await memory.batchAdd([
      { content: "We sat by the river", id: "river", sessionId: "walk", createTime: before(14), importance: 1 },
      { content: "A heron came", id: "heron", sessionId: "walk", createTime: before(7), importance: 0 },
      { content: "It flew off", id: "flew", sessionId: "walk", metadata: { draft: true } },
    ]);
    const ids = (results: Found<Result>) => results.map(({ item }) => item.id);
    const filter = 'session_id = "walk" AND NOT metadata.draft = true';
    assert.deepEqual(ids(await memory.retrieve({ filter })), ["river", "heron"]);
    const drafts = [];
    for await (const item of memory.listItems({ filter: "metadata.draft = true" })) {
      drafts.push(item.id);
    }
    assert.deepEqual(drafts, ["flew"]);
    await assert.rejects(memory.retrieve({ filter: "id = " }), { field: "options.filter", reason: "INVALID_FIELD" });

    const only = { lexical: 0, vector: 0 };
    const weighty = await memory.retrieve("heron river", { filter, weights: { ...only, importance: 1 } });
    assert.deepEqual(weighty.map(({ item, score }) => [item.id, score]), [["river", 1], ["heron", 0]]);
    assert.equal(weighty[1]?.item.importance, 0);
    const recent = await memory.retrieve("heron river", { filter, now, weights: { ...only, recency: 1 } });
    assert.deepEqual(recent.map(({ item, score }) => [item.id, score]), [["heron", 0.5], ["river", 0.25]]);
    const slow = { ...only, recency: 1, recencyHalfLifeMs: 14 * day };
    assert.equal((await memory.retrieve("heron river", { filter, now, weights: slow }))[1]?.score, 0.5);
    await memory.retrieve("heron", { filter: "id = heron", recordUsage: true });
    const used = await memory.retrieve("heron", { filter: "id = heron", weights: { ...only, usage: 1 } });
    assert.equal(used[0]?.score, 0.25);

    const best = { mode: "lexical", limit: 1, maxTokens: 50 } as const;
    const alone = await memory.retrieve("heron", best);
    const together = await memory.retrieve("heron", { ...best, contextWindow: 1 });
    const { before: earlier, after: later } = together[0]!;
    assert.deepEqual([...earlier, ...later].map(({ text }) => text), ["We sat by the river", "It flew off"]);
    assert.ok(alone.tokenCount > 0 && together.tokenCount > alone.tokenCount && together.tokenCount <= 50);
    const paged = await memory.retrieve({ limit: -1, maxTokens: 50, pageSize: 1 });
    assert.deepEqual([paged.length, paged.tokenCount], [3, together.tokenCount]);
    const reranked = await memory.retrieve("heron", { rerank: true });
    assert.deepEqual(reranked.degraded.map(({ reason }) => reason), ["NO_RERANKER"]);
    assert.equal((await client.info()).reranker, "none");
    const cleared = await memory.update("river", { importance: null });
    assert.deepEqual([cleared.importance, cleared.text], [undefined, "We sat by the river"]);
  });

  test("thousands of items in and out, in order", async () => {
    const memory = fresh();
    async function* records() {
      for (let number = 0; number < 3000; number++) {
        yield { content: `item ${number}`, id: `id-${number}` };
      }
      yield { key: "state", value: { a: 1 }, description: "beside them" };
    }
    const summary = await memory.importItems(records());
    assert.deepEqual([summary.importedCount, summary.importedStateCount], [3000, 1]);
    const again = await memory.importItems(records(), { onDuplicate: "skip", batchRecords: 1000 });
    assert.deepEqual([again.importedCount, again.skippedCount, again.skippedStateCount], [0, 3000, 1]);
    const expected = Array.from({ length: 3000 }, (_, number) => `item ${number}`);
    const listed: string[] = [];
    for await (const item of memory.listItems()) {
      listed.push(item.text);
    }
    assert.deepEqual(listed, expected);
    const retrieved = await memory.retrieve({ limit: -1, pageSize: 700 });
    assert.deepEqual(retrieved.map((result) => result.text), expected);
    const backwards = memory.listItems({ newestFirst: true, pageSize: 7 });
    assert.equal((await backwards.next()).value?.text, "item 2999");
    await backwards.return();
  });

  test("values of a label are listed page by page", async () => {
    const memory = fresh();
    await memory.batchAdd(["b", "c", "a", "b"].map((k) => ({ content: "x", labels: { k } })));
    const listed: object[] = [];
    for await (const value of memory.listLabelValues("k", { pageSize: 1 })) {
      listed.push(value);
    }
    assert.deepEqual(listed, [
      { value: "a", count: 1 },
      { value: "b", count: 2 },
      { value: "c", count: 1 },
    ]);
    assert.deepEqual(await memory.listLabelValues("k", { prefix: "b" }).next(), {
      value: { value: "b", count: 2 },
      done: false,
    });
    await assert.rejects(memory.listLabelValues("").next(), { reason: "INVALID_FIELD", field: "key" });
  });

  test("a record with an unknown property ends an import", async () => {
    const memory = fresh();
    const item = { content: "tea", lables: {} };
    await assert.rejects(memory.importItems([item]), { message: /^records\[0\]\.lables: unknown option/ });
    const entry = { key: "k", value: 1, ttlMs: 1 };
    await assert.rejects(memory.importItems([entry]), { message: /^records\[0\]\.ttlMs: unknown option/ });
  });

  test("what is exported can be imported", async () => {
    const from = fresh();
    await from.add(chatMessage("user", "hi"), { labels: { a: "b" }, createTime: "2026-05-01T12:00:00.000001Z" });
    await from.saveState("k", { a: [1] }, { description: "d" });
    const to = fresh();
    await to.importItems(from.export({ includeEmbedding: true }));
    const [item, entry] = await exported(to);
    const [original] = await exported(from);
    assert.ok(original !== undefined && "id" in original && item !== undefined && "id" in item);
    assert.notEqual(item.embedding, undefined);
    assert.deepEqual({ ...item, updateTime: original.updateTime }, original);
    assert.ok(entry !== undefined && "key" in entry);
    assert.deepEqual([entry.key, entry.value, entry.description], ["k", { a: [1] }, "d"]);
  });

  test("state", async () => {
    const memory = fresh();
    const first = await memory.saveState("plan/1", { step: 1, big: "9007199254740993" }, { expectedVersion: 0 });
    assert.deepEqual([first.version, first.value], [1, undefined]);
    const second = await memory.saveState("plan/1", null, { expectedVersion: 1, description: "none", ttlMs: 1e9 });
    assert.equal(second.version, 2);
    assert.notEqual(second.expireTime, undefined);
    const loaded = await memory.loadState("plan/1");
    assert.deepEqual([loaded.value, loaded.description], [null, "none"]);
    for (let number = 2; number < 30; number++) {
      await memory.saveState(`plan/${number}`, number);
    }
    const keys: string[] = [];
    for await (const entry of memory.listStateKeys({ pageSize: 4, includePreview: true })) {
      keys.push(entry.key);
      assert.equal(entry.value, undefined);
      assert.notEqual(entry.preview, "");
    }
    assert.equal(keys.length, 29);
    const values: unknown[] = [];
    for await (const entry of memory.searchState("plan/?", { pageSize: 2 })) {
      values.push(entry.value);
    }
    assert.deepEqual(values, [null, 2, 3, 4, 5, 6, 7, 8, 9]);
    await memory.deleteState("plan/1", { expectedVersion: 2 });
    assert.equal((await memory.clearState()).stateCount, 28);
  });

  test("a watch tells of items and of states", async () => {
    const memory = fresh();
    await memory.add("one", { id: "a" });
    await memory.saveState("k", 1);
    await memory.delete("a");
    await memory.saveState("k", 2);
    const told: unknown[] = [];
    for await (const change of memory.watch({ afterRevision: 0 })) {
      told.push([change.type, change.itemId || change.stateKey, change.item?.text ?? change.state?.value]);
      if (change.revision === 4) {
        break;
      }
    }
    assert.deepEqual(told, [
      ["item_added", "a", undefined],
      ["state_saved", "k", undefined],
      ["item_deleted", "a", undefined],
      ["state_saved", "k", 2],
    ]);
  });

  test("the server and its namespaces", async () => {
    const memory = client.namespace("cared-for");
    await memory.add("something");
    assert.equal(await memory.health(), "serving");
    assert.equal(await memory.health("memory_service.v1.MemoryService"), "serving");
    await assert.rejects(memory.health("no.such.Service"), NotFoundError);
    const info = await memory.info();
    assert.equal(info.store, "hnsw");
    assert.equal(info.limits["text_bytes_max"], 65536);
    assert.match(info.startTime ?? "", /^\d{4}-.*Z$/);
    const names: string[] = [];
    for await (const { namespace, itemCount } of memory.listNamespaces({ prefix: "cared", pageSize: 1 })) {
      names.push(`${namespace}: ${itemCount}`);
    }
    assert.deepEqual(names, ["cared-for: 1"]);
    assert.equal((await memory.namespaceStats()).itemCount, 1);
    assert.ok((await memory.flush()) >= 0);
    const backup = await memory.backup("first");
    assert.deepEqual([backup.name, backup.sizeBytes > 0], ["first", true]);
    assert.deepEqual(await memory.deleteNamespace(), { itemCount: 1, stateCount: 0, revision: 0 });
  });

  test("a client in a block is closed at its end", async () => {
    let memory: MemoryClient;
    {
      await using scoped = new MemoryClient(server.address);
      memory = scoped;
      await scoped.info();
    }
    await assert.rejects(memory.info(), /closed/);
  });
});

async function exported(memory: MemoryClient): Promise<(MemoryItem | StateEntry)[]> {
  const records: (MemoryItem | StateEntry)[] = [];
  for await (const record of memory.export({ includeEmbedding: true })) {
    records.push(record);
  }
  return records;
}
