// Options that no method has are rejected before any call: there is no server in these tests.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { MemoryClient } from "../src/index.js";
import { ARGUMENTS } from "../src/option-names.js";

/** Calls that were misspelled, or that a program without types makes. */
type Untyped = Readonly<Record<string, (...given: unknown[]) => unknown>>;

const client = new MemoryClient("127.0.0.1:1", { maxAttempts: 1 });
const untyped = client as unknown as Untyped;

const METHODS = Object.getOwnPropertyNames(MemoryClient.prototype).filter(
  (name) => !["constructor", "namespace", "close"].includes(name),
);

/** Makes a call to its end, also that of an iterator. */
async function made(name: string, ...given: unknown[]): Promise<void> {
  const returned = untyped[name]!.apply(client, given);
  if (typeof returned === "object" && returned !== null && Symbol.asyncIterator in returned) {
    for await (const _ of returned as AsyncIterable<unknown>);
  }
  await returned;
}

describe("unknown options", { timeout: 60_000 }, () => {
  test("every method is checked", () => {
    assert.deepEqual(METHODS.sort(), Object.keys(ARGUMENTS).sort());
    assert.ok(METHODS.length > 45, `${METHODS.length} methods`);
  });

  for (const name of METHODS) {
    const { length } = ARGUMENTS[name as keyof typeof ARGUMENTS];
    const before = Array.from({ length: length - 1 }, () => undefined);

    test(name, async () => {
      const message = new RegExp(`^${name}: unknown option "topK"; the options are .*\\bsignal\\b`);
      await assert.rejects(made(name, ...before, { topK: 5 }), { name: "TypeError", message });
      await assert.rejects(made(name, ...before, { signal: undefined, topK: undefined }), { message });
      await assert.rejects(made(name, ...before, 5), { message: `${name}: the options must be an object, not number` });
      await assert.rejects(made(name, ...before, null), { message: `${name}: the options must be an object, not null` });
      // The names of what every object has are no options either.
      await assert.rejects(made(name, ...before, { constructor: 1 }), { message: /unknown option "constructor"/ });
    });
  }

  test("a method rejects rather than throws", async () => {
    const rejected = untyped["add"]!.call(client, "tea", { userId: "ada" }) as Promise<unknown>;
    await assert.rejects(rejected, { message: /^add: unknown option "userId"; the options are createTime, / });
  });

  test("both forms of a retrieval", async () => {
    for (const given of [[{ userId: "ada" }], ["tea", { userId: "ada" }], [undefined, { userId: "ada" }]]) {
      await assert.rejects(made("retrieve", ...given), { message: /^retrieve: unknown option "userId"/ });
    }
    await assert.rejects(made("listItems", "trip"), { message: /^listItems: the options must be .*, not string$/ });
    await assert.rejects(made("retrieve", "tea", "trip"), { message: /^retrieve: the options must be/ });
  });

  test("options inside of options", async () => {
    const cases: [string, unknown[], string][] = [
      ["retrieve", ["tea", { weights: { words: 1 } }], "retrieve.weights"],
      ["add", ["tea", { provenance: { words: 1 } }], "add.provenance"],
      ["saveMemory", ["", "", "", { source: { words: 1 } }], "saveMemory.source"],
      ["storeResponse", ["", { originalMessage: { words: 1 } }], "storeResponse.originalMessage"],
    ];
    for (const [name, given, where] of cases) {
      await assert.rejects(made(name, ...given), { message: new RegExp(`^${where}: unknown option "words"`) });
    }
  });

  test("changes, items and operations", async () => {
    const wrong = { message: /unknown option "lables"; the options are .*labels/ };
    const lables = {};
    await assert.rejects(made("update", "id", { lables }), wrong);
    await assert.rejects(made("updateMemory", "id", { lables }), wrong);
    await assert.rejects(made("batchAdd", ["tea", { content: "tea", lables }]), wrong);
    await assert.rejects(made("batchWrite", [{ type: "add", item: { content: "tea", lables } }]), wrong);
    await assert.rejects(made("batchWrite", [{ type: "delete_where", lables }]), wrong);
    await assert.rejects(made("batchWrite", [{ type: "update", id: "x", changes: { lables } }]), {
      message: /^operations\[0\]\.changes: unknown option "lables"/,
    });
    await assert.rejects(made("batchWrite", ["tea", { type: "drop" }]), { message: /^operations\[0\]: .*undefined/ });
    await assert.rejects(made("batchWrite", [{ type: "drop" }]), { message: /^operations\[0\]: .*"drop"/ });
    for (const type of ["delete", "save_state", "delete_state"]) {
      await assert.rejects(made("batchWrite", [{ type, requestId: "r" }]), { message: /unknown option "requestId"/ });
    }
  });

  test("a client", () => {
    const cases: [unknown, RegExp][] = [
      [{ apikey: "secret" }, /^TypeError: MemoryClient: unknown option "apikey"/],
      [{ tls: { ca: "secret" } }, /^TypeError: MemoryClient.tls: unknown option "ca"/],
      ["secret", /^TypeError: MemoryClient: the options must be an object, not string$/],
    ];
    for (const [options, message] of cases) {
      assert.throws(() => new MemoryClient("127.0.0.1:1", options as object), message);
    }
  });
});
