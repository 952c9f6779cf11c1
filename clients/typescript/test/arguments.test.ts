// Arguments that cannot be sent are rejected before any call, by name. There is no server in these tests.

import assert from "node:assert/strict";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { inspect } from "node:util";

import { ARGUMENTS } from "../src/argument-shapes.js";
import { InvalidArgumentError, MemoryClient, MemoryServiceError } from "../src/index.js";
import { invalid, LONE, parameters } from "./invalid-values.js";

/** Calls that were misspelled, or that a program without types makes. */
type Untyped = Readonly<Record<string, (...given: unknown[]) => unknown>>;

const nowhere = new MemoryClient("127.0.0.1:1", { maxAttempts: 1 });

const METHODS = Object.getOwnPropertyNames(MemoryClient.prototype).filter(
  (name) => !["constructor", "namespace", "close"].includes(name),
);

/** Makes a call to its end, also that of an iterator. */
async function made(client: MemoryClient, name: string, ...given: unknown[]): Promise<void> {
  const returned = (client as unknown as Untyped)[name]!.apply(client, given);
  if (typeof returned === "object" && returned !== null && Symbol.asyncIterator in returned) {
    for await (const _ of returned as AsyncIterable<unknown>);
  }
  await returned;
}

/** Returns the error of a call, which must be one of the client's own. */
async function failure(client: MemoryClient, name: string, ...given: unknown[]): Promise<MemoryServiceError> {
  const shown = () => `${name}(${given.map((value) => inspect(value, { depth: 8 })).join(", ")})`;
  const error = await made(client, name, ...given).then(
    () => assert.fail(`${shown()} did not fail`),
    (raised: unknown) => raised,
  );
  assert.ok(error instanceof MemoryServiceError, `${shown()} failed with ${inspect(error)}`);
  return error;
}

async function refused(name: string, given: readonly unknown[], field: string, message: RegExp): Promise<void> {
  const error = await failure(nowhere, name, ...given);
  assert.ok(error instanceof InvalidArgumentError, inspect(error));
  assert.equal(error.field, field);
  assert.match(error.message, message);
}

describe("values that cannot be sent", { timeout: 120_000 }, () => {
  // The records of an import are read once a server takes them.
  const server = createServer().on("stream", (stream) => stream.on("error", () => {}));
  let client: MemoryClient;

  before(async () => {
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const { port } = server.address() as AddressInfo;
    client = new MemoryClient(`127.0.0.1:${port}`, { maxAttempts: 1, timeoutMs: 1000 });
  });
  after(() => {
    client.close();
    server.close();
  });

  const all = [...parameters()];

  test("every argument of every method is tried", () => {
    const tried = (name: string) => all.filter(({ method }) => method === name).map(({ name }) => name);
    assert.deepEqual([...new Set(all.map(({ method }) => method))].sort(), METHODS.toSorted());
    for (const [name, shapes] of Object.entries(ARGUMENTS)) {
      assert.deepEqual(tried(name), Object.keys(shapes), name);
    }
  });

  for (const { method, name, fitting, index, isOptional, type } of all) {
    test(`${method}: ${name}`, async () => {
      const values = [...invalid(type), ...(isOptional ? [] : [undefined])];
      assert.ok(values.length > 5);
      for (const value of values) {
        const error = await failure(client, method, ...fitting.with(index, value));
        const shown = `${inspect(value, { depth: 8 })}: ${inspect(error)}`;
        assert.ok(error instanceof InvalidArgumentError, shown);
        assert.equal(error.code, "INVALID_ARGUMENT");
        assert.ok(error.message.startsWith(`${error.field}: `), shown);
        const [field] = /^\w*/.exec(error.field)!;
        const isOfOptions = typeof value === "object" && value !== null && field in value;
        // The options of a retrieval may take the place of its query.
        const isForOptions = name === "options" || (method === "retrieve" && value instanceof Map);
        assert.ok(field === name || (isForOptions && (isOfOptions || field === "options")), shown);
      }
    });
  }

  test("numbers that no field holds", async () => {
    const shape = Object.entries(ARGUMENTS).flatMap(([method, { options }]) =>
      Object.keys(options).map((option) => [method, option] as const),
    );
    for (const [method, option] of shape) {
      const given = all.find((each) => each.method === method && each.name === "options")!.fitting.slice(0, -1);
      for (const number of [NaN, -1, 1.5, 1e300]) {
        const error = await failure(nowhere, method, ...given, { [option]: number });
        assert.ok(error.field === "" || error.field === option, inspect(error));
        assert.notEqual(error.code, "INTERNAL", inspect(error));
      }
    }
  });
});

describe("a closed client", { timeout: 60_000 }, () => {
  const closed = new MemoryClient("127.0.0.1:1");
  const view = closed.namespace("ada");
  closed.close();

  for (const { method, fitting } of [...parameters()].filter(({ name }) => name === "options")) {
    test(method, async () => {
      for (const client of [closed, view]) {
        const { code, message } = await failure(client, method, ...fitting);
        assert.deepEqual([code, message], ["CANCELLED", "the client is closed"]);
      }
    });
  }
});

describe("unknown options", { timeout: 60_000 }, () => {
  for (const { method, fitting } of [...parameters()].filter(({ name }) => name === "options")) {
    test(method, async () => {
      const given = fitting.slice(0, -1);
      const message = /^topK: unknown option; the options are .*\bsignal\b/;
      await refused(method, [...given, { topK: 5 }], "topK", message);
      await refused(method, [...given, { signal: undefined, topK: undefined }], "topK", message);
      await refused(method, [...given, 5], "options", /^options: must be an object, not number$/);
      // The names of what every object has are no options either.
      await refused(method, [...given, { constructor: 1 }], "constructor", /unknown option/);
    });
  }

  test("a method rejects rather than throws", async () => {
    const add = (nowhere as unknown as Untyped)["add"]!;
    const rejected = add.call(nowhere, "tea", { userId: "ada" }) as Promise<unknown>;
    await assert.rejects(rejected, { message: /^userId: unknown option; the options are createTime, / });
  });

  test("both forms of a retrieval", async () => {
    for (const given of [[{ userId: "ada" }], ["tea", { userId: "ada" }], [undefined, { userId: "ada" }]]) {
      await refused("retrieve", given, "userId", /unknown option/);
    }
    await refused("listItems", ["trip"], "options", /must be an object, not string$/);
    await refused("retrieve", ["tea", "trip"], "options", /must be an object/);
  });

  test("options inside of options, changes, items and operations", async () => {
    const lables = {};
    const cases: [string, unknown[], string][] = [
      ["retrieve", ["tea", { weights: { words: 1 } }], "weights.words"],
      ["add", ["tea", { provenance: { words: 1 } }], "provenance.words"],
      ["saveMemory", ["", "", "", { source: { words: 1 } }], "source.words"],
      ["storeResponse", ["", { originalMessage: { words: 1 } }], "originalMessage.words"],
      ["update", ["id", { lables }], "changes.lables"],
      ["updateMemory", ["id", { lables }], "changes.lables"],
      ["batchAdd", [["tea", { content: "tea", lables }]], "items[1].lables"],
      ["batchWrite", [[{ type: "add", item: { content: "tea", lables } }]], "operations[0].item.lables"],
      ["batchWrite", [[{ type: "delete_where", lables }]], "operations[0].lables"],
      ["batchWrite", [[{ type: "update", id: "x", changes: { lables } }]], "operations[0].changes.lables"],
    ];
    for (const [name, given, field] of cases) {
      await refused(name, given, field, /: unknown option; the options are /);
    }
    await refused("batchWrite", [["tea", { type: "drop" }]], "operations[0]", /must be an object, not string$/);
    await refused("batchWrite", [[{ type: "drop" }]], "operations[0].type", /"drop" is not one of add, update, /);
    for (const type of ["delete", "save_state", "delete_state"]) {
      await refused("batchWrite", [[{ type, requestId: "r" }]], "operations[0].requestId", /unknown option/);
    }
  });

  test("a client", () => {
    const cases: [unknown, string][] = [
      [{ apikey: "secret" }, "apikey"],
      [{ tls: { ca: "secret" } }, "tls.ca"],
      [{ tls: "secret" }, "tls"],
      [{ headers: { a: 5 } }, "headers.a"],
      [{ apiKey: "secret\n" }, "apiKey"],
      [{ apiKey: { secret: 1 } }, "apiKey"],
      [{ tokenSource: "secret" }, "tokenSource"],
      [{ namespace: LONE }, "namespace"],
      [{ timeoutMs: "secret" }, "timeoutMs"],
      [{ maxReceiveBytes: Infinity }, "maxReceiveBytes"],
      ["secret", "options"],
      [null, "options"],
    ];
    for (const [options, field] of cases) {
      assert.throws(
        () => new MemoryClient("127.0.0.1:1", options as object),
        (error) => error instanceof InvalidArgumentError && error.field === field && !/secret/.test(error.message),
        field,
      );
    }
    for (const address of [5, null, [5], {}]) {
      assert.throws(() => new MemoryClient(address as never), { name: "InvalidArgumentError", message: /^address/ });
    }
    assert.throws(() => nowhere.namespace(5 as never), { name: "InvalidArgumentError", field: "name" });
  });
});
