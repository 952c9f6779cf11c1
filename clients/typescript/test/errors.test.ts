// How calls fail: by class, reason and field, by deadline, by signal.

import assert from "node:assert/strict";
import { createServer as createHttp2Server } from "node:http2";
import type { Http2Server, IncomingHttpHeaders } from "node:http2";
import { createServer } from "node:net";
import type { AddressInfo, Server as Listener } from "node:net";
import { after, before, describe, test } from "node:test";

import * as client from "../src/index.js";
import { MemoryClient } from "../src/index.js";
import { Server, skip } from "./server.js";

describe("errors of a server", { skip, timeout: 120_000 }, () => {
  let server: Server;
  let memory: MemoryClient;

  before(async () => {
    server = await Server.start();
    memory = new MemoryClient(server.address, { namespace: "errors" });
    await memory.add("taken", { id: "taken", embedding: [1, 0, 0] });
  });

  after(async () => {
    memory.close();
    await server.remove();
  });

  test("something that is not there", async () => {
    const error = await failure(memory.get("nope"), client.NotFoundError);
    assert.equal(error.code, "NOT_FOUND");
    assert.equal(error.reason, "ITEM_NOT_FOUND");
    assert.deepEqual({ ...error.metadata }, { id: "nope", namespace: "errors" });
    assert.equal(error.name, "NotFoundError");
    assert.match(error.message, /no item 'nope'/);
    assert.equal(error.field, "");
    assert.equal(error.retryAfterMs, undefined);
  });

  test("an id that is taken", async () => {
    const error = await failure(memory.add("again", { id: "taken" }), client.AlreadyExistsError);
    assert.equal(error.reason, "ITEM_ALREADY_EXISTS");
  });

  test("a field that is wrong is named", async () => {
    const error = await failure(memory.add(""), client.InvalidArgumentError);
    assert.equal(error.reason, "INVALID_FIELD");
    assert.equal(error.field, "item.text");
  });

  test("a vector of another dimension", async () => {
    const error = await failure(memory.add("x", { embedding: [1, 2] }), client.InvalidArgumentError);
    assert.equal(error.reason, "DIMENSION_MISMATCH");
    assert.equal(error.metadata["expected"], "3");
    assert.equal(error.field, "item.embedding");
  });

  test("somebody else wrote first", async () => {
    await memory.saveState("plan", { step: 1 });
    const stale = memory.saveState("plan", { step: 2 }, { expectedVersion: 7 });
    const error = await failure(stale, client.ConflictError);
    assert.equal(error.reason, "VERSION_MISMATCH");
    assert.equal(error.metadata["current_version"], "1");
    const other = await failure(memory.delete("taken", { expectedRevision: 99 }), client.ConflictError);
    assert.equal(other.reason, "REVISION_MISMATCH");
  });

  test("a text that is too large", async () => {
    const error = await failure(memory.add("x".repeat(70_000)), client.LimitExceededError);
    assert.equal(error.reason, "LIMIT_EXCEEDED");
    assert.equal(error.metadata["limit_name"], "text_bytes_max");
  });

  test("what the server does not offer", async () => {
    const other = await Server.start("--store", "memory");
    const admin = new MemoryClient(other.address);
    const error = await failure(admin.backup(), client.UnsupportedError);
    assert.equal(error.reason, "UNSUPPORTED");
    admin.close();
    await other.remove();
  });

  test("a request id that was used for another request", async () => {
    await memory.add("one", { requestId: "same" });
    assert.equal((await memory.add("one", { requestId: "same" })).text, "one");
    const error = await failure(memory.add("two", { requestId: "same" }), client.FailedPreconditionError);
    assert.equal(error.reason, "REQUEST_ID_REUSED");
  });

  test("an answer that is larger than the client takes", async () => {
    const small = new MemoryClient(server.address, { namespace: "errors", maxReceiveBytes: 1000 });
    await small.add("x".repeat(5000), { id: "large" }).catch(() => undefined);
    await failure(small.get("large"), client.LimitExceededError);
    small.close();
  });

  test("a stream that is refused", async () => {
    const error = await failure(memory.namespace("never-written").export().next(), client.NotFoundError);
    assert.equal(error.reason, "NAMESPACE_NOT_FOUND");
  });

  test("an import that is refused while it goes on", async () => {
    function* records() {
      for (let number = 0; number < 20_000; number++) {
        yield { content: `item ${number}`, id: number === 0 ? "taken" : `imported-${number}`, embedding: [1, 0, 0] };
      }
    }
    const error = await failure(memory.importItems(records(), { batchRecords: 10 }), client.AlreadyExistsError);
    assert.equal(error.reason, "ITEM_ALREADY_EXISTS");
  });

  test("an import whose iterable throws", async () => {
    let isClosed = false;
    async function* records() {
      try {
        yield { content: "before", embedding: [1, 0, 0] };
        throw new SyntaxError("no more");
      } finally {
        isClosed = true;
      }
    }
    await assert.rejects(memory.importItems(records()), new SyntaxError("no more"));
    assert.ok(isClosed);
  });

  test("a call on a client that was closed", async () => {
    const closed = new MemoryClient(server.address);
    await closed.info();
    const changes = closed.watch({ afterRevision: 0 });
    const waiting = failure(changes.next(), client.MemoryServiceError);
    closed.close();
    assert.equal((await waiting).code, "CANCELLED");
    assert.equal((await failure(closed.info(), client.MemoryServiceError)).code, "CANCELLED");
  });

  test("a signal that was aborted before the call", async () => {
    const signal = AbortSignal.abort(new SyntaxError("not wanted"));
    await assert.rejects(memory.info({ signal }), new SyntaxError("not wanted"));
    await assert.rejects(memory.importItems([], { signal }), new SyntaxError("not wanted"));
    await assert.rejects(memory.watch({ signal }).next(), new SyntaxError("not wanted"));
  });

  test("a signal that ends a watch", async () => {
    const wish = new AbortController();
    const changes = memory.namespace("quiet").watch({ signal: wish.signal });
    const waiting = changes.next();
    await memory.info();
    wish.abort();
    await assert.rejects(waiting, { name: "AbortError" });
    assert.deepEqual(await changes.next(), { done: true, value: undefined });
  });

  test("return() ends a watch that waits", async () => {
    const changes = memory.namespace("quiet").watch();
    const waiting = changes.next();
    await memory.info();
    assert.deepEqual(await changes.return(), { done: true, value: undefined });
    assert.deepEqual(await waiting, { done: true, value: undefined });
  });

  test("a loop that is left ends its stream on the server", async () => {
    const limit = (await memory.info()).limits["concurrent_streams_max"]!;
    for (let count = 0; count < limit + 5; count++) {
      for await (const change of memory.watch({ afterRevision: 0 })) {
        assert.equal(change.itemId, "taken");
        break;
      }
    }
  });
});

describe("errors without a server", { timeout: 120_000 }, () => {
  let silent: Listener;
  let address: string;
  let accepted = 0;

  before(async () => {
    silent = createServer((socket) => {
      accepted++;
      socket.on("error", () => socket.destroy());
    });
    await new Promise<void>((listening) => silent.listen(0, "127.0.0.1", listening));
    address = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
  });

  after(() => {
    silent.close();
  });

  test("a server that does not answer in time", async () => {
    const memory = new MemoryClient(address, { timeoutMs: 200 });
    const error = await failure(memory.info(), client.DeadlineExceededError);
    assert.equal(error.code, "DEADLINE_EXCEEDED");
    assert.equal(error.reason, "");
    await failure(memory.info({ timeoutMs: 50 }), client.DeadlineExceededError);
    await failure(memory.importItems([{ content: "x" }], { timeoutMs: 50 }), client.DeadlineExceededError);
    memory.close();
  });

  test("a signal during a call", async () => {
    const memory = new MemoryClient(address);
    const wish = new AbortController();
    const call = memory.info({ signal: wish.signal });
    setImmediate(() => wish.abort());
    await assert.rejects(call, { name: "AbortError" });
    await assert.rejects(memory.info({ signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
    memory.close();
  });

  test("a signal between two attempts", async () => {
    const memory = new MemoryClient(await freeAddress(), { waitForReady: true });
    await assert.rejects(memory.info({ signal: AbortSignal.timeout(300) }), { name: "TimeoutError" });
    memory.close();
  });

  test("a client that is closed during a call", async () => {
    const memory = new MemoryClient(address);
    const call = failure(memory.info(), client.MemoryServiceError);
    setImmediate(() => memory.close());
    assert.equal((await call).code, "CANCELLED");
  });

  test("a server that is not there", async () => {
    const memory = new MemoryClient(await freeAddress(), { maxAttempts: 2 });
    const error = await failure(memory.info(), client.UnavailableError);
    assert.equal(error.code, "UNAVAILABLE");
    await failure(memory.watch().next(), client.UnavailableError);
    const begin = Date.now();
    const [, port] = (await freeAddress()).split(":");
    // A name may stand for several addresses, which are all tried.
    const patient = new MemoryClient(`localhost:${port}`, { waitForReady: true, timeoutMs: 2500, maxAttempts: 1 });
    await failure(patient.info(), client.UnavailableError);
    assert.ok(Date.now() - begin > 1000, "it did not wait");
  });

  test("a server that went away for longer than a call may take", { skip }, async () => {
    const server = await Server.start("--embedder", "none");
    const memory = new MemoryClient(server.address, { timeoutMs: 2500 });
    await memory.info();
    await server.remove();
    const begin = Date.now();
    await failure(memory.flush(), client.UnavailableError);
    assert.ok(Date.now() - begin > 2000, "it did not wait");
  });

  test("a server that hangs up at once is tried as often as asked for", async () => {
    const rude = createServer((socket) => socket.destroy());
    let tries = 0;
    rude.on("connection", () => tries++);
    await new Promise<void>((listening) => rude.listen(0, "127.0.0.1", listening));
    const memory = new MemoryClient(`127.0.0.1:${(rude.address() as AddressInfo).port}`, { maxAttempts: 3 });
    await failure(memory.info(), client.UnavailableError);
    assert.equal(tries, 3);
    await failure(memory.backup(), client.UnavailableError);
    assert.equal(tries, 4);
    rude.close();
  });

  test("a call that comes too early comes again when the server says so", { skip }, async (t) => {
    const server = await Server.start("--calls-per-s-max", "1", "--embedder", "none");
    t.after(() => server.remove());
    const memory = new MemoryClient(server.address, { namespace: "patient" });
    await memory.add("one");
    await memory.add("two");
    assert.equal((await memory.retrieve()).length, 2);
    const hasty = new MemoryClient(server.address, { namespace: "patient", maxAttempts: 1 });
    const error = await failure(untilOneFails(() => hasty.retrieve()), client.LimitExceededError);
    assert.equal(error.reason, "OVERLOADED");
    assert.ok((error.retryAfterMs ?? 0) > 0);
    memory.close();
    hasty.close();
  });

  test("a call that the server cancels, as it does when it stops, is tried again", async () => {
    let tries = 0;
    const leaving = createHttp2Server();
    leaving.on("stream", (stream) => {
      tries++;
      const head = { ":status": 200, "content-type": "application/grpc", "grpc-status": "1" };
      stream.respond(head, { endStream: true });
    });
    await new Promise<void>((listening) => leaving.listen(0, "127.0.0.1", listening));
    const address = `127.0.0.1:${(leaving.address() as AddressInfo).port}`;
    const memory = new MemoryClient(address, { maxAttempts: 3 });
    await failure(memory.info(), client.UnavailableError);
    assert.equal(tries, 3);
    memory.close();
    leaving.close();
  });
});

describe("what is sent with every call", { timeout: 120_000 }, () => {
  let gate: Http2Server;
  let address: string;
  const headers: IncomingHttpHeaders[] = [];

  before(async () => {
    gate = createHttp2Server();
    gate.on("stream", (stream, received) => {
      headers.push(received);
      const status = { "grpc-status": "16", "grpc-message": "who%20are%20you%3F" };
      stream.respond({ ":status": 200, "content-type": "application/grpc", ...status }, { endStream: true });
    });
    await new Promise<void>((listening) => gate.listen(0, "127.0.0.1", listening));
    address = `127.0.0.1:${(gate.address() as AddressInfo).port}`;
  });

  after(() => {
    gate.close();
  });

  test("token, headers and time limit; an error without details", async () => {
    const memory = new MemoryClient(address, { apiKey: "secret", headers: { "X-Team": "blue" } });
    const error = await failure(memory.info({ timeoutMs: 5000 }), client.UnauthenticatedError);
    assert.equal(error.message, "who are you?");
    assert.equal(error.reason, "");
    const sent = headers.at(-1)!;
    assert.equal(sent["authorization"], "Bearer secret");
    assert.equal(sent["x-team"], "blue");
    assert.match(String(sent["grpc-timeout"]), /^(5000|49\d\d)m$/);
    await failure(memory.watch().next(), client.UnauthenticatedError);
    assert.equal(headers.at(-1)!["authorization"], "Bearer secret");
    assert.equal(headers.at(-1)!["grpc-timeout"], undefined);
    memory.close();
  });
});

test("options that are out of range", () => {
  assert.throws(() => new MemoryClient("localhost:1", { maxAttempts: 6 }), { field: "maxAttempts" });
  assert.throws(() => new MemoryClient("localhost:1", { maxAttempts: 0 }), { field: "maxAttempts" });
  assert.throws(() => new MemoryClient("localhost:1", { timeoutMs: 0 }), { field: "timeoutMs" });
  assert.throws(() => new MemoryClient("localhost:1", { keepaliveMs: NaN }), { field: "keepaliveMs" });
  assert.throws(() => new MemoryClient("localhost:1", { headers: { "no name": "x" } }), { field: "headers" });
  for (const address of ["localhost", "http://localhost:1", "localhost:1/path", ""]) {
    assert.throws(() => new MemoryClient(address), { name: "InvalidArgumentError", field: "address" });
  }
});

/** Returns the error that a call fails with, which is of the class given. */
async function failure<E extends Error>(call: Promise<unknown>, kind: abstract new (...args: never[]) => E): Promise<E> {
  const error: unknown = await call.then(
    () => assert.fail("the call did not fail"),
    (raised: unknown) => raised,
  );
  assert.ok(error instanceof kind, `${String(error)} is not a ${kind.name}`);
  return error;
}

/** Returns an address that no process listens on. */
async function freeAddress(): Promise<string> {
  const listener = createServer();
  await new Promise<void>((listening) => listener.listen(0, "127.0.0.1", listening));
  const { port } = listener.address() as AddressInfo;
  await new Promise((closed) => listener.close(closed));
  return `127.0.0.1:${port}`;
}

async function untilOneFails(call: () => Promise<unknown>): Promise<void> {
  for (let calls = 0; calls < 1000; calls++) {
    await call();
  }
}
