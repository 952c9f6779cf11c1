// Messages, responses and reflections over a real server.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { AlreadyExistsError, MemoryClient, NotFoundError } from "../src/index.js";
import { Server, skip } from "./server.js";

const TIME = "2026-05-01T12:00:00.123456Z";

describe("interactions", { skip, timeout: 120_000 }, () => {
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

  test("a message comes back as it was stored", async () => {
    const agent = fresh();
    const stored = await agent.storeInteraction("ada", "Which train goes to Paris?", {
      id: "m1",
      sessionId: "trip",
      createTime: TIME,
      labels: { topic: "travel" },
      metadata: { mood: "hurried" },
      ttlMs: 60_000,
    });
    const { degraded, ...message } = stored;
    assert.deepEqual(degraded, []);
    assert.equal(message.kind, "message");
    assert.equal(message.createTime, TIME);
    assert.notEqual(message.expireTime, undefined);
    const [pair] = await agent.retrieveLastInteractions();
    assert.deepEqual(pair, { message, responses: [], responseCount: 0 });
    await assert.rejects(agent.storeInteraction("ada", "Again", { id: "m1" }), AlreadyExistsError);
  });

  test("a response is linked by the id or by what the message said", async () => {
    const agent = fresh();
    const { id } = await agent.storeInteraction("ada", "Hello", { sessionId: "s", createTime: TIME });
    const byId = await agent.storeResponse("Hi Ada", { inResponseTo: id, sender: "helper" });
    const original = { content: "Hello", sender: "ada", createTime: new Date("2026-05-01T12:00:00.123Z") };
    await assert.rejects(agent.storeResponse("Hi", { originalMessage: original }), NotFoundError);
    const byText = await agent.storeResponse("Hi!", { originalMessage: { ...original, createTime: TIME } });
    for (const response of [byId, byText]) {
      assert.equal(response.inResponseTo, id);
      assert.equal(response.sessionId, "s");
      const said = { content: "Hello", sender: "ada", createTime: TIME, provenance: undefined };
      assert.deepEqual(response.originalMessage, said);
    }
    const [pair] = await agent.retrieveLastInteractions({ sender: "ada" });
    assert.deepEqual(pair?.responses.map(({ content }) => content), ["Hi Ada", "Hi!"]);
    assert.equal(pair?.responseCount, 2);
  });

  test("the last messages come over all pages, the newest first", async () => {
    const agent = fresh();
    for (const number of [0, 1, 2, 3, 4]) {
      await agent.storeInteraction("ada", `message ${number}`);
    }
    const contents = async (options: { limit?: number; pageSize?: number }) =>
      (await agent.retrieveLastInteractions(options)).map(({ message }) => message.content);
    const newest = ["message 4", "message 3", "message 2", "message 1", "message 0"];
    assert.deepEqual(await contents({ limit: -1, pageSize: 2 }), newest);
    assert.deepEqual(await contents({ limit: 3, pageSize: 2 }), newest.slice(0, 3));
    assert.deepEqual(await contents({ limit: 0 }), []);
    assert.equal((await agent.retrieveLastInteractions()).revision, 5);
  });

  test("context is what fits, and reflections are marked", async () => {
    const agent = fresh();
    const { id } = await agent.storeInteraction("ada", "I need a hotel in Paris");
    await agent.storeInteraction("ada", "My cat sleeps all day");
    await agent.storeReflection("I should ask for dates before looking for a hotel in Paris", {
      interactionIds: [id],
      sender: "helper",
    });
    const context = await agent.retrieveRelevantContext("a hotel in Paris", {
      interactionLimit: 1,
      reflectionLimit: 1,
      explain: true,
    });
    assert.deepEqual(context.map(({ interaction }) => interaction.kind), ["message", "reflection"]);
    assert.equal(context[0]?.interaction.id, id);
    assert.notEqual(context[0]?.explanation.length, 0);
    assert.deepEqual(context[1]?.interaction.interactionIds, [id]);
    assert.match(context[1]!.text, /^SYSTEM REFLECTION: I should ask/);
    assert.ok(context.tokenCount > 0);
    assert.equal(context.revision, 3);
    const others = await agent.retrieveRelevantContext("a hotel in Paris", { excludeIds: [id], reflectionLimit: 0 });
    assert.deepEqual(others.map(({ text }) => text), ["My cat sleeps all day"]);
  });
});
