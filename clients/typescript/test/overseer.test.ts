// What the overseer decides, by the rules of a real server without a language model.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { FailedPreconditionError, MemoryClient } from "../src/index.js";
import type { JsonValue } from "../src/index.js";
import { Server, skip } from "./server.js";

describe("overseer", { skip, timeout: 120_000 }, () => {
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

  test("the state that a goal needs comes with its values", async () => {
    const agent = fresh();
    await agent.saveState("kudos/list", ["ada", "grace"], { description: "People on the kudos list" });
    await agent.saveState("weather/today", { sky: "clear" }, { description: "The weather of today" });
    const relevance = await agent.checkRelevance("Who is on my kudos list?", { explain: true });
    assert.equal(relevance.decidedBy, "rules");
    assert.deepEqual(relevance.entries.map(({ key, value }) => [key, value]), [["kudos/list", ["ada", "grace"]]]);
    assert.equal(relevance.decisions[0]?.verdict, "relevant");
    assert.notEqual(relevance.decisions[0]?.explanation.length, 0);
    assert.equal(relevance.keyCount, 2);
    assert.equal(relevance.llmUsage, undefined);
    assert.match(relevance.contextText, /kudos\/list/);
    const bare = await agent.checkRelevance("Who is on my kudos list?", { limit: 0, pattern: "kudos/*" });
    assert.deepEqual(bare.entries, []);
    assert.equal(bare.keyCount, 1);
  });

  test("a result that is worth keeping is saved when asked to", async () => {
    const agent = fresh();
    const people: JsonValue = Array.from({ length: 20 }, (_, number) => ({ id: number, name: `Person ${number}` }));
    const told = await agent.evaluateForStorage("list_people", people, { goal: "Find all people", key: "people" });
    assert.equal(told.shouldSave, true);
    assert.equal(told.saved, false);
    assert.equal(told.entry, undefined);
    const options = { arguments: { team: "research" }, key: "people", save: true, ttlMs: 60_000 };
    const saved = await agent.evaluateForStorage("list_people", people, { ...options, requestId: "once" });
    assert.equal(saved.saved, true);
    assert.equal(saved.entry?.key, "people");
    assert.notEqual(saved.entry?.expireTime, undefined);
    assert.deepEqual((await agent.loadState("people")).value, people);
    assert.deepEqual(await agent.evaluateForStorage("list_people", people, { ...options, requestId: "once" }), saved);
    const kept = await agent.evaluateForStorage("list_people", people, options);
    assert.equal(kept.saved, false);
    assert.deepEqual(kept.failures.map(({ reason, key }) => [reason, key]), [["KEY_EXISTS", "people"]]);
  });

  test("a result of null can be judged, and an error is never kept", async () => {
    const agent = fresh();
    const decision = await agent.evaluateForStorage("lookup", null, { isError: true, save: true });
    assert.equal(decision.shouldSave, false);
    assert.equal(decision.key, "");
    await assert.rejects(
      agent.evaluateForStorage("lookup", undefined as unknown as JsonValue),
      { name: "InvalidArgumentError", field: "result" },
    );
  });

  test("to insist on a model that the server does not have fails", async () => {
    const refused = fresh().checkRelevance("anything", { decideBy: "llm" });
    await assert.rejects(refused, (error: unknown) => {
      return error instanceof FailedPreconditionError && error.reason === "LLM_REQUIRED";
    });
  });
});
