// Facts about a user over a real server, decided by its rules.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { chatMessage, ConflictError, FailedPreconditionError, MemoryClient, NotFoundError } from "../src/index.js";
import type { MemoryCategory } from "../src/index.js";
import { all } from "./peer-adapters.js";
import { Server, skip } from "./server.js";

const WHY = "Tells how to address the user";

describe("user memories", { skip, timeout: 120_000 }, () => {
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

  test("a fact is saved once, and a contradiction ends it", async () => {
    const user = fresh();
    const saved = await user.saveMemory("I live in Berlin, near the river", "identity", WHY, {
      source: { sessionId: "s", itemIds: ["m1"], quote: "I live in Berlin", actor: "tester" },
      labels: { topic: "home" },
      metadata: { nested: [1, null] },
    });
    assert.equal(saved.outcome, "saved");
    assert.equal(saved.decidedBy, "rules");
    assert.equal(saved.memory?.content, "User lives in Berlin, near the river");
    assert.equal(saved.memory?.originalContent, "I live in Berlin, near the river");
    assert.equal(saved.memory?.source.origin, "saved");
    assert.deepEqual(saved.memory?.source.itemIds, ["m1"]);
    assert.deepEqual(saved.memory?.metadata, { nested: [1, null] });
    assert.equal(saved.memory?.importance.base, 10);
    const again = await user.saveMemory("I live in Berlin, near the river", "identity", WHY);
    assert.equal(again.outcome, "duplicate");
    assert.equal(again.existing?.id, saved.memory?.id);
    assert.equal(again.memory, undefined);
  });

  test("one request id saves one fact", async () => {
    const user = fresh();
    const save = () => user.saveMemory("User plays the violin", "context", WHY, { requestId: "once" });
    const [first, second] = [await save(), await save()];
    assert.equal(first.outcome, "saved");
    assert.equal(second.outcome, "saved");
    assert.deepEqual(second.memory, first.memory);
  });

  test("lists and searches go over all pages", async () => {
    const user = fresh();
    const words = ["tea", "trains", "chess", "violins", "mountains"];
    for (const word of words) {
      await user.saveMemory(`User is fond of ${word}`, "preference", WHY, { onContradiction: "keep_both" });
    }
    const listed = await all(user.listMemories({ pageSize: 2, categories: ["preference"] }));
    assert.deepEqual(listed.map(({ content }) => content), words.map((word) => `User is fond of ${word}`));
    const backwards = await all(user.listMemories({ newestFirst: true, pageSize: 3 }));
    assert.deepEqual(backwards, listed.toReversed());
    const found = await user.searchMemories("User is fond of chess", { limit: -1, pageSize: 2, explain: true });
    assert.equal(found.length, words.length);
    assert.equal(found[0]?.memory.content, "User is fond of chess");
    assert.notEqual(found[0]?.explanation.length, 0);
    assert.equal(found.revision, words.length);
    assert.deepEqual(found.degraded, []);
    assert.deepEqual(await all(user.listMemories({ categories: ["identity"] })), []);
  });

  test("a correction changes what is given and clears what is null", async () => {
    const user = fresh();
    const options = { ttlMs: 3_600_000, labels: { a: "b" }, keepWording: true };
    const { memory } = await user.saveMemory("User works at a bakery", "context", WHY, options);
    assert.notEqual(memory?.expireTime, undefined);
    const corrected = await user.updateMemory(memory!.id, { importance: 3, labels: {}, expireTime: null });
    assert.equal(corrected.outcome, "saved");
    assert.equal(corrected.memory.content, "User works at a bakery");
    assert.equal(corrected.memory.importance.score, 3);
    assert.equal(corrected.memory.expireTime, undefined);
    assert.deepEqual(corrected.memory.labels, {});
    assert.equal(corrected.memory.version, 2);
    const stale = user.updateMemory(memory!.id, { importance: 4 }, { expectedVersion: 1 });
    await assert.rejects(stale, (error: ConflictError) => error.metadata["current_version"] === "2");
  });

  test("a removal takes the history along when it is asked to", async () => {
    const user = fresh();
    await user.saveMemory("User lives in Berlin", "identity", WHY, { validFromTime: "2024-01-01T00:00:00Z" });
    const moved = await user.saveMemory("User lives in Paris", "identity", WHY);
    assert.equal(moved.outcome, "superseded");
    assert.equal(moved.superseded[0]?.status, "superseded");
    const then = await all(user.listMemories({ asOfTime: new Date("2024-06-01T00:00:00Z") }));
    assert.deepEqual(then.map(({ content }) => content), ["User lives in Berlin"]);
    assert.equal((await all(user.listMemories({ includeHistory: true }))).length, 2);
    assert.equal((await user.deleteMemory(moved.memory!.id, { includeHistory: true })).count, 2);
    await assert.rejects(user.deleteMemory(moved.memory!.id), NotFoundError);
  });

  test("what is important is preloaded", async () => {
    const user = fresh();
    await user.saveMemory("User is called Ada Lovelace", "identity", WHY);
    await user.saveMemory("User is writing a thesis", "project", WHY);
    const preloaded = await user.getPreloadedMemories({ maxTokens: -1 });
    assert.deepEqual(preloaded.memories.map(({ category }) => category), ["identity"]);
    assert.match(preloaded.text, /Ada Lovelace/);
    assert.ok(preloaded.tokenCount > 0);
  });

  test("facts are extracted from messages, and a dry run writes nothing", async () => {
    const user = fresh();
    const messages = [chatMessage("user", "My name is Ada, and I prefer tea to coffee.")];
    const dry = await user.extractMemories({ messages, dryRun: true, decideBy: "rules" });
    assert.equal(dry.examinedCount, 1);
    assert.notEqual(dry.results.length, 0);
    assert.deepEqual(await all(user.listMemories()), []);
    const wet = await user.extractMemories({ messages, actor: "tester", decideBy: "rules" });
    assert.deepEqual(wet.results.map(({ outcome }) => outcome), dry.results.map(({ outcome }) => outcome));
    const stored = await all(user.listMemories());
    assert.equal(stored[0]?.source.origin, "extracted");
    assert.equal(stored[0]?.source.actor, "tester");
  });

  test("a consolidation tells what it would do", async () => {
    const user = fresh();
    const done = await user.consolidateMemories({ dryRun: true, limit: 3, similarityThreshold: 0.9 });
    assert.deepEqual(done.consolidations, []);
    assert.equal(done.more, false);
  });

  test("to insist on a model that the server does not have fails", async () => {
    const refused = fresh().consolidateMemories({ decideBy: "llm" });
    await assert.rejects(refused, (error: unknown) => {
      return error instanceof FailedPreconditionError && error.reason === "LLM_REQUIRED";
    });
  });

  test("a word that the client does not know is refused before anything is sent", async () => {
    const user = fresh();
    const category = "hobby" as MemoryCategory;
    await assert.rejects(user.saveMemory("User plays chess", category, WHY), /category: there is no "hobby"/);
    await assert.rejects(all(user.listMemories({ categories: [category] })), /categories\[0\]/);
  });
});
