// Several servers: where calls go, and that callers get no error when one of them goes away.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { resolve } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";

import { MemoryClient, UnavailableError } from "../src/index.js";
import { addressesOf, headerOf, orderOf, Servers, weightOf } from "../src/servers.js";
import { packageFolder, Server, skip } from "./server.js";

interface Placement {
  placements: { addresses: string[]; namespace: string; weights: string[]; order: string[] }[];
  headers: { namespace: string; header: string | null }[];
  refused: string[];
}

const shared = JSON.parse(readFileSync(resolve(packageFolder, "../placement.json"), "utf8")) as Placement;

test("a namespace has the same order in every client", () => {
  for (const { addresses, namespace, weights, order } of shared.placements) {
    assert.deepEqual(orderOf(addresses, namespace).map((index) => addresses[index]), order);
    weights.forEach((weight, index) => assert.equal(weightOf(addresses[index]!, namespace).toString("hex"), weight));
  }
});

test("the header of a namespace", () => {
  for (const { namespace, header } of shared.headers) {
    assert.equal(headerOf(namespace), header ?? undefined);
  }
});

test("addresses that are refused, and those that are not", () => {
  for (const given of shared.refused) {
    assert.throws(() => new MemoryClient(given), { name: "InvalidArgumentError", field: "address", message: /^address: / });
    assert.throws(() => new MemoryClient(given.split(",")), { name: "InvalidArgumentError", field: "address", message: /^address: / });
  }
  assert.throws(() => new MemoryClient([]), { field: "address" });
  assert.deepEqual(addressesOf(" a:1 ,b:2"), ["a:1", "b:2"]);
  assert.deepEqual(addressesOf(["[::1]:1", "b:2"]), ["[::1]:1", "b:2"]);
  assert.throws(() => new MemoryClient("localhost:1,memory.example.org:2", { apiKey: "k" }), /credentials need tls/);
});

test("a server that failed is tried last, unless all share what is wrong", () => {
  const servers = new Servers(["a:1", "b:1", "c:1"].map((address) => ({ address })));
  const way = servers.begin("");
  const away = new UnavailableError("away", { code: "UNAVAILABLE" });
  const tried = [away, away, away, away].map((error) => [way.movesOn(error), way.server.address]);
  assert.deepEqual(tried, [[true, "b:1"], [true, "c:1"], [false, "a:1"], [false, "b:1"]]);
  const fresh = new Servers(["a:1", "b:1"].map((address) => ({ address })));
  const noModel = new UnavailableError("no", { code: "UNAVAILABLE", reason: "LLM_UNAVAILABLE" });
  const first = fresh.begin("");
  assert.deepEqual([first.movesOn(noModel), first.server.address], [false, "a:1"]);
  assert.equal(first.movesOn(away), true);
  assert.equal(fresh.begin("").server.address, "b:1");
});

test("the namespace is sent with every call that has one", async () => {
  const told: (string | undefined)[] = [];
  const gate = createServer();
  gate.on("stream", (stream, headers) => {
    told.push(headers["memory-namespace"] as string | undefined);
    const head = { ":status": 200, "content-type": "application/grpc", "grpc-status": "5" };
    stream.respond(head, { endStream: true });
  });
  await new Promise<void>((listening) => gate.listen(0, "127.0.0.1", listening));
  const address = `127.0.0.1:${(gate.address() as AddressInfo).port}`;
  const memory = new MemoryClient(address, { namespace: "Zoë" });
  const calls = [() => memory.info(), () => memory.loadState("k"), () => memory.importItems([]), () => memory.watch().next()];
  for (const call of calls) {
    await assert.rejects(call(), { code: "NOT_FOUND" });
  }
  assert.deepEqual(told, [undefined, "Zo%C3%AB", "Zo%C3%AB", "Zo%C3%AB"]);
  memory.close();
  gate.close();
});

describe("two servers with records of their own", { skip, timeout: 180_000 }, () => {
  let two: Server[];
  let memory: MemoryClient;

  beforeEach(async () => {
    two = await Promise.all([1, 2].map(() => Server.start("--embedder", "none")));
    // A call that waits for a server must outlast its restart, also on a machine that is busy.
    memory = new MemoryClient(two.map((server) => server.address), { namespace: "ada", timeoutMs: 120_000 });
  });

  afterEach(async () => {
    memory.close();
    await Promise.all(two.map((server) => server.remove()));
  });

  /** The servers in the order in which the calls of a namespace try them. */
  const inOrder = (namespace: string) =>
    orderOf(two.map((server) => server.address), namespace).map((index) => two[index]!) as [Server, Server];

  /** Runs something by a client of one server alone. */
  const at = async <T>(server: Server, namespace: string, run: (own: MemoryClient) => Promise<T>): Promise<T> => {
    const own = new MemoryClient(server.address, { namespace });
    try {
      return await run(own);
    } finally {
      own.close();
    }
  };
  const texts = (server: Server, namespace: string) =>
    at(server, namespace, async (own) => (await own.retrieve({ limit: -1 })).map(({ text }) => text));

  test("calls go by namespace, and the rest to the first", async () => {
    const namespaces = Array.from({ length: 8 }, (_, number) => `user-${number}`);
    for (const namespace of namespaces) {
      await memory.namespace(namespace).add(namespace);
      await memory.namespace(namespace).importItems([]);
      const [first, second] = inOrder(namespace);
      assert.deepEqual(await texts(first, namespace), [namespace]);
      assert.deepEqual(await texts(second, namespace), []);
    }
    const listed: string[] = [];
    for await (const { namespace } of memory.listNamespaces({ prefix: "user-" })) {
      listed.push(namespace);
    }
    assert.deepEqual(listed, namespaces.filter((namespace) => inOrder(namespace)[0] === two[0]));
  });

  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    test(`no call fails when one of them goes away by ${signal}`, async () => {
      const [first, second] = inOrder("ada");
      await memory.add("before");
      assert.deepEqual(await texts(first, "ada"), ["before"]);
      await first.end(signal);
      for (let number = 0; number < 20; number++) {
        await memory.add(`after ${number}`);
        await memory.info();
      }
      assert.equal((await texts(second, "ada")).length, 20);
    });
  }

  test("one that is away at first is passed over", async () => {
    const [first, second] = inOrder("ada");
    await first.end("SIGKILL");
    await at(second, "ada", (own) => own.add("one"));
    const changes = memory.watch({ afterRevision: 0 });
    assert.equal((await changes.next()).value?.item?.text, "one");
    await changes.return();
    // An import is tried once, at a server that is not known to be down.
    await memory.importItems([{ content: "two" }]);
    assert.deepEqual(await texts(second, "ada"), ["one", "two"]);
  });

  test("a watch goes on at the next", async () => {
    const [first, second] = inOrder("ada");
    for (const server of two) {
      // Their namespaces have the same revisions, as those of servers of one database have.
      await at(server, "ada", (own) => own.add("one"));
    }
    const changes = memory.watch({ afterRevision: 0 });
    assert.equal((await changes.next()).value?.item?.text, "one");
    await first.end("SIGKILL");
    await at(second, "ada", (own) => own.add("two"));
    assert.equal((await changes.next()).value?.item?.text, "two");
    await changes.return();
  });

  test("calls wait while all are away, unless none was ever there", async () => {
    const [first] = inOrder("ada");
    await memory.add("before");
    await Promise.all(two.map((server) => server.end("SIGKILL")));
    const stranger = new MemoryClient(two.map(({ address }) => address).join(", "));
    await assert.rejects(stranger.info(), UnavailableError);
    await assert.rejects(stranger.watch().next(), UnavailableError);
    stranger.close();
    const written = memory.add("after");
    await first.again();
    await written;
    assert.deepEqual(await texts(first, "ada"), ["before", "after"]);
  });
});
