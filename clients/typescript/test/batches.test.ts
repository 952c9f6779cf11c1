// Batches of operations, deleting by conditions, and what happens to duplicates, over a real server.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import {
  AlreadyExistsError,
  chatMessage,
  ConflictError,
  InvalidArgumentError,
  LimitExceededError,
  MemoryClient,
  MemoryServiceError,
  NotFoundError,
} from "../src/index.js";
import type { NewItem, WriteOperation } from "../src/index.js";
import { Server, skip } from "./server.js";

describe("batches", { skip, timeout: 180_000 }, () => {
  let server: Server;
  let client: MemoryClient;
  let count = 0;

  /** Returns the client bound to an unused namespace. */
  const fresh = () => client.namespace(`fresh-${count++}`);

  before(async () => {
    server = await Server.start("--embedder", "none");
    client = new MemoryClient(server.address);
  });

  after(async () => {
    client.close();
    await server.remove();
  });

  async function texts(memory: MemoryClient): Promise<string[]> {
    const found: string[] = [];
    for await (const item of memory.listItems()) {
      found.push(item.text);
    }
    return found;
  }

  test("an item whose id exists", async () => {
    const memory = fresh();
    const first = await memory.add("one", { id: "a", createTime: "2026-05-01T12:00:00Z", labels: { old: "yes" } });
    await assert.rejects(memory.add("two", { id: "a" }), AlreadyExistsError);
    await assert.rejects(memory.add("two", { id: "a", onDuplicate: "fail" }), AlreadyExistsError);
    const skipped = await memory.add("two", { id: "a", onDuplicate: "skip", sessionId: "s", embedding: [1, 0] });
    assert.deepEqual([skipped.id, skipped.text, skipped.sessionId, skipped.revision], ["a", "two", "s", 0]);
    assert.deepEqual([skipped.embedding, skipped.createTime, skipped.labels], [undefined, undefined, {}]);
    assert.equal((await memory.get("a")).text, "one");
    const replaced = await memory.add("two", { id: "a", onDuplicate: "replace" });
    assert.deepEqual([replaced.text, replaced.createTime, replaced.labels], ["two", first.createTime, {}]);
    assert.equal(replaced.revision, first.revision + 1);
    const added = await memory.add("three", { id: "b", onDuplicate: "skip" });
    assert.equal(added.revision, replaced.revision + 1);
  });

  test("items whose ids exist", async () => {
    const memory = fresh();
    await memory.batchAdd([{ id: "a", content: "one" }, "two"]);
    const items: NewItem[] = [{ id: "a", content: "changed" }, { id: "b", content: "three" }];
    await assert.rejects(memory.batchAdd(items), AlreadyExistsError);
    assert.deepEqual(await texts(memory), ["one", "two"]);
    const written = await memory.batchAdd(items, { onDuplicate: "skip" });
    assert.deepEqual(written.map(({ id, text }) => [id, text]), [["b", "three"]]);
    assert.deepEqual(await texts(memory), ["one", "two", "three"]);
    assert.equal((await memory.batchAdd(items, { onDuplicate: "replace" })).length, 2);
    assert.deepEqual(await texts(memory), ["changed", "two", "three"]);
  });

  test("every operation, and its result", async () => {
    const memory = fresh();
    const { revision: before } = await memory.add("before", { id: "kept", sessionId: "old", labels: { a: "b" } });
    await memory.batchAdd([{ id: "gone", content: "gone" }, { id: "dull", content: "dull", sessionId: "old" }]);
    await memory.saveState("done", true);
    await memory.saveState("plan", { step: 1 }, { description: "steps" });
    const { results, revision, degraded } = await memory.batchWrite([
      { type: "add", item: "by a string" },
      { type: "add", item: chatMessage("user", "by a message") },
      { type: "add", item: { id: "new", content: "by an item", ttlMs: 60_000, createTime: "2026-05-01T12:00:00Z" } },
      { type: "add", item: { id: "kept", content: "skipped" }, onDuplicate: "skip" },
      { type: "update", id: "dull", changes: { content: "after", labels: {} }, expectedRevision: before + 2 },
      { type: "delete", id: "gone", expectedRevision: before + 1 },
      { type: "delete", id: "missing", allowMissing: true },
      { type: "save_state", key: "plan", value: null, expectedVersion: 1, ttlMs: 60_000 },
      { type: "delete_state", key: "done", expectedVersion: 1 },
      { type: "delete_state", key: "missing", allowMissing: true },
    ]);
    const [string, message, item, skipped, updated, removed, missing, saved, removedState, missingState] = results;
    assert.equal(results.length, 10);
    assert.deepEqual([string!.id.length > 0, message!.revision], [true, string!.revision + 1]);
    assert.deepEqual([item!.id, item!.createTime, item!.skipped], ["new", "2026-05-01T12:00:00.000000Z", false]);
    assert.equal(Date.parse(item!.expireTime!) - Date.parse(item!.updateTime!), 60_000);
    assert.deepEqual([skipped!.skipped, skipped!.revision, skipped!.expireTime], [true, 0, undefined]);
    assert.deepEqual([updated!.id, updated!.revision > item!.revision], ["dull", true]);
    assert.deepEqual([removed, missing].map((result) => result!.deletedCount), [1, 0]);
    assert.deepEqual([saved!.version, saved!.id, saved!.deletedCount], [2, "", 0]);
    assert.deepEqual([removedState, missingState].map((result) => result!.deletedCount), [1, 0]);
    assert.equal((await memory.namespaceStats()).revision, revision);
    assert.deepEqual(degraded.map(({ reason }) => reason), ["NO_EMBEDDER"]);
    const inOrder = ["before", "after", "by a string", "by a message", "by an item"];
    assert.deepEqual(await texts(memory), inOrder);
    assert.deepEqual((await memory.get("dull")).labels, {});
    const { value, description, expireTime } = await memory.loadState("plan");
    assert.deepEqual([value, description, expireTime], [null, "steps", saved!.expireTime]);

    const [byCondition] = (await memory.batchWrite([{ type: "delete_where", sessionId: "old" }])).results;
    assert.deepEqual([byCondition!.deletedCount, byCondition!.id, byCondition!.revision], [2, "", 0]);
    assert.deepEqual(await texts(memory), inOrder.slice(2));
  });

  test("an operation that fails undoes the batch", async () => {
    const memory = fresh();
    const { revision } = await memory.add("one", { id: "a" });
    const add: WriteOperation = { type: "add", item: { id: "b", content: "two" } };
    const cases: [WriteOperation, Function, string][] = [
      [{ type: "add", item: { id: "a", content: "again" } }, AlreadyExistsError, "ITEM_ALREADY_EXISTS"],
      [{ type: "update", id: "a", changes: { content: "x" }, expectedRevision: 9 }, ConflictError, "REVISION_MISMATCH"],
      [{ type: "delete", id: "missing" }, NotFoundError, "ITEM_NOT_FOUND"],
      [{ type: "save_state", key: "k", value: 1, expectedVersion: 3 }, ConflictError, "VERSION_MISMATCH"],
      [{ type: "delete_state", key: "k" }, NotFoundError, "STATE_NOT_FOUND"],
      [{ type: "delete_where" }, InvalidArgumentError, "INVALID_FIELD"],
      [{ type: "delete", id: "b" }, InvalidArgumentError, "INVALID_FIELD"],
    ];
    for (const [operation, kind, reason] of cases) {
      await assert.rejects(memory.batchWrite([add, operation]), (error: MemoryServiceError) => {
        assert.ok(error instanceof kind && error.reason === reason, `${operation.type}: ${error}`);
        assert.ok(kind !== InvalidArgumentError || error.field.startsWith("operations[1]."), error.field);
        return true;
      });
    }
    assert.equal((await memory.namespaceStats()).revision, revision);
    await assert.rejects(memory.batchWrite([]), InvalidArgumentError);
  });

  test("a batch with a request id is applied once", async () => {
    const memory = fresh();
    const operations: WriteOperation[] = [{ type: "add", item: "one" }, { type: "save_state", key: "k", value: 1 }];
    const first = await memory.batchWrite(operations, { requestId: "once" });
    assert.deepEqual(await memory.batchWrite(operations, { requestId: "once" }), first);
    assert.deepEqual(await texts(memory), ["one"]);
  });

  test("items that meet conditions are deleted", async () => {
    const memory = fresh();
    const day = (number: number) => `2026-05-0${number}T00:00:00Z`;
    const all = [1, 2, 3, 4].map((number) => ({
      content: `${number}`,
      sessionId: number < 3 ? "s" : "t",
      createTime: day(number),
      labels: { parity: number % 2 === 0 ? "even" : "odd" },
      metadata: { number },
    }));
    await memory.batchAdd(all);
    const cases = [
      [{ sessionId: "s" }, 2],
      [{ labels: { parity: "odd" } }, 2],
      [{ labels: { parity: "odd" }, sessionId: "s" }, 1],
      [{ startTime: day(2) }, 3],
      [{ endTime: new Date(day(2)) }, 1],
      [{ filter: "metadata.number > 3" }, 1],
      [{ kinds: ["message"] }, 0],
      [{ kinds: ["plain"] }, 4],
    ] as const;
    for (const [condition, expected] of cases) {
      assert.equal(await memory.deleteWhere({ ...condition, dryRun: true }), expected, JSON.stringify(condition));
    }
    assert.equal((await texts(memory)).length, 4);
    assert.equal(await memory.deleteWhere({ sessionId: "s", labels: { parity: "odd" } }), 1);
    assert.deepEqual(await texts(memory), ["2", "3", "4"]);
    await assert.rejects(memory.deleteWhere({}), { reason: "INVALID_FIELD" });
    await assert.rejects(memory.deleteWhere({ dryRun: true }), { reason: "INVALID_FIELD" });
    await assert.rejects(memory.deleteWhere({ kinds: ["document"] }), { reason: "INVALID_FIELD", field: "kinds" });
  });

  test("more items than one call deletes", async () => {
    const memory = fresh();
    const total = 10_050;
    const records = function* () {
      for (let number = 0; number < total; number++) {
        yield { content: "x", sessionId: number === 7 ? "kept" : "s" };
      }
    };
    await memory.importItems(records());
    assert.equal(await memory.deleteWhere({ sessionId: "s", dryRun: true }), total - 1);
    await assert.rejects(memory.batchWrite([{ type: "delete_where", sessionId: "s" }]), LimitExceededError);
    assert.equal(await memory.deleteWhere({ sessionId: "s", requestId: "all-of-them" }), total - 1);
    // Only the first of the calls is the same one again.
    assert.equal(await memory.deleteWhere({ sessionId: "s", requestId: "all-of-them" }), 10_000);
    assert.equal(await memory.deleteWhere({ sessionId: "s" }), 0);
    assert.deepEqual(await texts(memory), ["x"]);
  });
});
