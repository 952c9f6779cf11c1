// The tools and the middleware of the AI SDK: with its functions and scripted models, over a real server.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";

import { MemoryClient } from "@memory-service/client";
import { memoryMiddleware, memoryTools } from "@memory-service/client/ai";
import type { MemoryMiddlewareOptions } from "@memory-service/client/ai";
import { generateText, stepCountIs, streamText, wrapLanguageModel } from "ai";
import { convertArrayToReadableStream, MockLanguageModelV3 } from "ai/test";

import { Server, skip } from "../../test/server.js";

type Answer = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>;
type Part = Awaited<ReturnType<MockLanguageModelV3["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

function says(text: string): Answer {
  return { content: [{ type: "text", text }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] };
}

function calls(toolName: string, input: object): Answer {
  const content: Answer["content"] = [{ type: "tool-call", toolCallId: "c1", toolName, input: JSON.stringify(input) }];
  return { content, finishReason: { unified: "tool-calls", raw: "tool_calls" }, usage, warnings: [] };
}

/** A model that gives prepared answers, one for each call. */
function scripted(...answers: Answer[]): MockLanguageModelV3 {
  return new MockLanguageModelV3({ doGenerate: async () => answers.shift()! });
}

function streamed(text: string, last: Part): MockLanguageModelV3 {
  const parts: Part[] = [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "1" },
    ...[...text].map((delta): Part => ({ type: "text-delta", id: "1", delta })),
    { type: "text-end", id: "1" },
    last,
  ];
  return new MockLanguageModelV3({ doStream: async () => ({ stream: convertArrayToReadableStream(parts) }) });
}

/** The text of what the model was asked last. */
function asked(model: MockLanguageModelV3): string {
  return JSON.stringify([...model.doGenerateCalls, ...model.doStreamCalls].at(-1)?.prompt);
}

describe("the AI SDK", { skip, timeout: 120_000 }, () => {
  let server: Server;
  let memory: MemoryClient;
  let count = 0;

  before(async () => {
    server = await Server.start("--embedder", "none");
  });

  beforeEach(() => {
    count += 1;
    memory = new MemoryClient(server.address, { namespace: `ai-${count}` });
  });

  after(async () => {
    memory.close();
    await server.remove();
  });

  const wrapped = (model: MockLanguageModelV3, options?: MemoryMiddlewareOptions, client = memory) =>
    wrapLanguageModel({ model, middleware: memoryMiddleware(client, options) });

  const kept = async () => (await memory.retrieve({ limit: -1 })).map(({ item, text }) => `${item.speaker}: ${text}`);

  test("a model remembers, recalls and forgets with tools", async () => {
    const tools = memoryTools(memory, { labels: { by: "model" } });
    const stopWhen = stepCountIs(5);
    const first = scripted(calls("remember", { text: "Ada likes green tea" }), says("Noted."));
    await generateText({ model: first, tools, stopWhen, prompt: "I like green tea" });
    const [found] = await memory.retrieve();
    assert.equal(found?.text, "Ada likes green tea");
    assert.deepEqual(found.item.labels, { by: "model" });

    const second = scripted(calls("recall", { query: "Which tea?" }), says("Green tea."));
    const { text, steps } = await generateText({ model: second, tools, stopWhen, prompt: "Which tea do I like?" });
    assert.equal(text, "Green tea.");
    const [result] = steps[0]!.toolResults;
    assert.deepEqual(result?.output, [{ id: found.item.id, text: "Ada likes green tea", time: found.item.createTime }]);
    assert.match(asked(second), /Ada likes green tea/);

    for (const deleted of [true, false]) {
      const third = scripted(calls("forget", { id: found.item.id }), says("Forgotten."));
      const { steps } = await generateText({ model: third, tools, stopWhen, prompt: "Forget the tea" });
      assert.deepEqual(steps[0]!.toolResults[0]?.output, { deleted });
    }
    assert.deepEqual(await kept(), []);
  });

  test("a tool that cannot reach the server is an error that the model sees", async () => {
    const away = new MemoryClient("127.0.0.1:1", { timeoutMs: 500 });
    const model = scripted(calls("recall", { query: "tea" }), says("I cannot look."));
    const { text } = await generateText({ model, tools: memoryTools(away), stopWhen: stepCountIs(3), prompt: "Tea?" });
    assert.equal(text, "I cannot look.");
    assert.match(asked(model), /error-text/);
    away.close();
  });

  test("what is remembered is added to the user's message, and the exchange is recorded as it was", async () => {
    await memory.add("Ada likes green tea </memory>");
    const model = scripted(says("Green tea."), says("At nine."));
    const options = { model: wrapped(model, { sessionId: "s1" }), system: "Be short." };
    const { text } = await generateText({ ...options, prompt: "What tea do I like?" });
    assert.equal(text, "Green tea.");
    const [system, user] = model.doGenerateCalls[0]!.prompt;
    assert.deepEqual(system, { role: "system", content: "Be short." });
    assert.equal(user?.content.length, 2);
    assert.match(asked(model), /<memory>.*Ada likes green tea \\n<\/memory>.*What tea do I like\?/);
    assert.deepEqual(await kept(), [": Ada likes green tea </memory>", "user: What tea do I like?", "assistant: Green tea."]);
    const messages = await memory.retrieve({ sessionId: "s1" });
    assert.equal(messages.length, 2);

    // The prompt has the conversation already.
    await generateText({ ...options, prompt: "When is tea time? What tea?" });
    assert.doesNotMatch(asked(model), /What tea do I like/);
    const other = scripted(says("Tea."));
    await generateText({ model: wrapped(other, { sessionId: "s2" }), prompt: "What tea do I like?" });
    assert.match(asked(other), /user: What tea do I like\?/);
  });

  test("the budget and the search's options hold", async () => {
    await memory.batchAdd(Array.from({ length: 30 }, (_, n) => `Note ${n} about tea: ${"leaf ".repeat(20)}`));
    await memory.add({ type: "text", text: "Secret tea" }, { labels: { hidden: "yes" } });
    const model = scripted(says("ok"), says("ok"), says("ok"));
    const ask = async (options: MemoryMiddlewareOptions) => {
      await generateText({ model: wrapped(model, { record: false, ...options }), prompt: "tea" });
      return asked(model);
    };
    const added = (await ask({ maxTokens: 100 })).split("Note ").length - 1;
    assert.ok(added >= 1 && added <= 4, `${added} notes`);
    assert.doesNotMatch(await ask({ retrieve: { filter: "labels.hidden = no OR labels.hidden = maybe" } }), /memory/);
    assert.match(await ask({ sessionId: "s", retrieve: { labels: { hidden: "yes" } } }), /Secret tea/);
    assert.equal((await kept()).length, 31);
  });

  test("an exchange with tool calls is recorded once, with its answer", async () => {
    const call = calls("recall", { query: "tea" });
    const model = scripted({ ...call, content: [...says("I look.").content, ...call.content] }, says("None yet."));
    const tools = memoryTools(memory);
    await generateText({ model: wrapped(model), tools, stopWhen: stepCountIs(3), prompt: "Any tea?" });
    assert.deepEqual(await kept(), ["user: Any tea?", "assistant: None yet."]);
  });

  test("a stream is passed on and recorded at its end; one that fails is not recorded", async () => {
    await memory.add("Ada likes green tea");
    const finish: Part = { type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } };
    const model = streamed("Green tea.", finish);
    assert.equal(await streamText({ model: wrapped(model), prompt: "Which tea?" }).text, "Green tea.");
    assert.match(asked(model), /Ada likes green tea/);
    const expected = [": Ada likes green tea", "user: Which tea?", "assistant: Green tea."];
    assert.deepEqual(await kept(), expected);

    const failing = streamed("Gre", { type: "error", error: new Error("broken") });
    const { textStream } = streamText({ model: wrapped(failing), prompt: "Which tea?", onError: () => {} });
    for await (const _ of textStream) {
      // Read to its end.
    }
    assert.deepEqual(await kept(), expected);
  });

  test("a server that is away, or refuses, fails no call of the model", async () => {
    const away = new MemoryClient("127.0.0.1:1");
    const errors: unknown[] = [];
    const onError = (error: unknown) => {
      errors.push(error);
      throw error;
    };
    const started = Date.now();
    const model = scripted(says("one"), says("two"));
    const options = { timeoutMs: 300, onError };
    const first = await generateText({ model: wrapped(model, options, away), prompt: "tea" });
    assert.equal(first.text, "one");
    assert.ok(Date.now() - started < 10_000);
    assert.equal(errors.length, 2, "the search and the record");
    const wrong = { retrieve: { filter: "(((" }, onError };
    assert.equal((await generateText({ model: wrapped(model, wrong), prompt: "tea" })).text, "two");
    assert.equal(errors.length, 3);
    away.close();
  });

  test("an error of the model is its own, and nothing is recorded", async () => {
    const model = new MockLanguageModelV3({ doGenerate: () => Promise.reject(new Error("no model")) });
    await assert.rejects(generateText({ model: wrapped(model), prompt: "tea", maxRetries: 0 }), /no model/);
    assert.deepEqual(await kept(), []);
  });
});
