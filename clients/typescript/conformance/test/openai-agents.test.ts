// Sessions of the OpenAI Agents SDK: with its runner and a scripted model, over a real server.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";

import { InvalidArgumentError, MemoryClient } from "@memory-service/client";
import { MemoryServiceSession } from "@memory-service/client/openai-agents";
import type { AgentInputItem, AgentOutputItem, Model, ModelRequest, ModelResponse } from "@openai/agents";
import { Agent, run, setTracingDisabled, tool, Usage } from "@openai/agents";
import { z } from "zod";

import { Server, skip } from "../../test/server.js";

setTracingDisabled(true);

/** A model that gives prepared answers and keeps what it was asked. */
class Scripted implements Model {
  readonly asked: AgentInputItem[][] = [];
  readonly #answers: AgentOutputItem[];

  constructor(...answers: AgentOutputItem[]) {
    this.#answers = answers;
  }

  async getResponse({ input }: ModelRequest): Promise<ModelResponse> {
    this.asked.push(structuredClone(input) as AgentInputItem[]);
    return { usage: new Usage(), output: [this.#answers.shift()!] };
  }

  getStreamedResponse(): never {
    throw new Error("not used");
  }
}

function says(text: string): AgentOutputItem {
  return { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] };
}

function user(content: string): AgentInputItem {
  return { type: "message", role: "user", content };
}

describe("sessions of the OpenAI Agents SDK", { skip, timeout: 120_000 }, () => {
  let server: Server;
  let memory: MemoryClient;
  let session: MemoryServiceSession;
  let count = 0;

  before(async () => {
    server = await Server.start("--embedder", "none");
  });

  beforeEach(() => {
    count += 1;
    memory = new MemoryClient(server.address, { namespace: `agents-${count}` });
    session = new MemoryServiceSession(memory, { sessionId: "trip" });
  });

  after(async () => {
    memory.close();
    await server.remove();
  });

  test("an agent continues a conversation, with tool calls, in another process's session", async () => {
    const call = { type: "function_call", callId: "c1", name: "trains", status: "completed", arguments: '{"to":"Paris"}' };
    const model = new Scripted(call as AgentOutputItem, says("At 12:04."), says("Paris."));
    const trains = tool({
      name: "trains",
      description: "Departures",
      parameters: z.object({ to: z.string() }),
      execute: ({ to }) => `12:04 to ${to}`,
    });
    const agent = new Agent({ name: "guide", model, tools: [trains] });
    const first = await run(agent, "When is a train to Paris?", { session });
    assert.equal(first.finalOutput, "At 12:04.");

    const other = new MemoryServiceSession(server.address, { sessionId: "trip", namespace: `agents-${count}` });
    const second = await run(agent, "Where do I go?", { session: other });
    assert.equal(second.finalOutput, "Paris.");
    const types = model.asked[2]!.map((item) => item.type ?? "message");
    assert.deepEqual(types, ["message", "function_call", "function_call_result", "message", "message"]);
    assert.equal((await session.getItems()).length, 6);
    other.close();

    const found = await memory.retrieve("departures to Paris", { sessionId: "trip" });
    assert.ok(found.some(({ text }) => text.includes('trains({"to":"Paris"})')));
  });

  test("items come back verbatim, the newest ones, oldest first", async () => {
    const items = [
      user("one"),
      { type: "reasoning", content: [{ type: "input_text", text: "hm" }], providerData: { a: [1.5, null] } },
      { type: "unknown", providerData: { half: "\ud83d", big: 2 ** 60 } },
      user(`long ${"x".repeat(3_000_000 / 2)}`),
      user("five"),
    ] as AgentInputItem[];
    await session.addItems(items);
    assert.deepEqual(await session.getItems(), items);
    assert.deepEqual(await session.getItems(2), items.slice(3));
    assert.deepEqual(await session.getItems(0), []);
    assert.equal(await session.getSessionId(), "trip");
  });

  test("many items are added at once and popped one by one", async () => {
    const items = Array.from({ length: 2500 }, (_, index) => user(`item ${index}`));
    await session.addItems(items);
    assert.deepEqual(await session.getItems(), items);
    assert.deepEqual(await session.getItems(4), items.slice(-4));
    for (const item of items.slice(-5).reverse()) {
      assert.deepEqual(await session.popItem(), item);
    }
    assert.deepEqual(await session.getItems(), items.slice(0, -5));
  });

  test("concurrent pops get different items", async () => {
    await session.addItems(Array.from({ length: 8 }, (_, index) => user(`${index}`)));
    const popped = await Promise.all(Array.from({ length: 10 }, () => session.popItem()));
    const texts = popped.flatMap((item) => (item === undefined ? [] : [JSON.stringify(item)]));
    assert.equal(new Set(texts).size, 8);
    assert.equal(texts.length, 8);
    assert.deepEqual(await session.getItems(), []);
  });

  test("clearing and compacting change nothing else", async () => {
    const other = new MemoryServiceSession(memory, { sessionId: "other" });
    await memory.add("Ada likes tea", { sessionId: "trip" });
    await session.addItems([user("one"), user("two")]);
    await other.addItems([user("kept")]);
    await session.replaceHistoryWithCompaction([user("short")]);
    assert.deepEqual(await session.getItems(), [user("short")]);
    await session.clearSession();
    await session.clearSession();
    assert.deepEqual(await session.getItems(), []);
    assert.equal(await session.popItem(), undefined);
    assert.deepEqual(await other.getItems(), [user("kept")]);
    assert.deepEqual((await memory.retrieve()).map(({ text }) => text).sort(), ["Ada likes tea", "kept"]);
  });

  test("an invalid item or id is an error of the client, and nothing is written", async () => {
    const cyclic = { ...user("x") } as Record<string, unknown>;
    cyclic["self"] = cyclic;
    await assert.rejects(session.addItems([user("one"), cyclic as AgentInputItem]), InvalidArgumentError);
    await assert.rejects(session.addItems([user("one"), user("y".repeat(5_000_000))]));
    assert.deepEqual(await session.getItems(), []);
    assert.throws(() => new MemoryServiceSession(memory, { sessionId: "" }), InvalidArgumentError);
    assert.throws(() => new MemoryServiceSession(3 as unknown as string, { sessionId: "x" }), InvalidArgumentError);
  });
});
