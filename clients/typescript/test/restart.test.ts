// What a caller notices of a server that goes away and comes back: nothing, where a call may be retried.

import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { after, afterEach, before, describe, test } from "node:test";

import { MemoryClient, UnavailableError } from "../src/index.js";
import type { Change } from "../src/index.js";
import { Relay } from "./relay.js";
import { Server, skip } from "./server.js";

describe("a server that restarts", { skip, timeout: 180_000 }, () => {
  let server: Server;
  let memory: MemoryClient;
  const progress = new EventEmitter();

  before(async () => {
    server = await Server.start("--embedder", "none");
  });

  after(async () => {
    await server.remove();
  });

  afterEach(() => {
    memory.close();
  });

  /** Waits for what the writers or the watch of a test bring about. */
  const until = async (isTrue: () => boolean) => {
    while (!isTrue()) {
      await once(progress, "step");
    }
  };

  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    test(`writes go on over ${signal}, and each is applied once`, async () => {
      memory = new MemoryClient(server.address, { namespace: `writes-${signal}` });
      const written: string[] = [];
      let isOver = false;
      const writer = async (name: string) => {
        for (let number = 0; !isOver; number++) {
          const text = `${name} ${number}`;
          await memory.add(text);
          written.push(text);
          progress.emit("step");
        }
      };
      const writers = Promise.all(["a", "b", "c", "d"].map(writer));
      for (let restarts = 0; restarts < 2; restarts++) {
        const before = written.length;
        await until(() => written.length > before + 50);
        await server.end(signal);
        await server.again();
      }
      const before = written.length;
      await until(() => written.length > before + 50);
      isOver = true;
      await writers;
      const stored: string[] = [];
      for await (const item of memory.listItems({ pageSize: 1000 })) {
        stored.push(item.text);
      }
      assert.deepEqual(stored.sort(), written.sort());
    });
  }

  test("a watch is taken up again without loss or repetition", async () => {
    memory = new MemoryClient(server.address, { namespace: "watched" });
    const seen: Change[] = [];
    const watching = (async () => {
      for await (const change of memory.watch({ afterRevision: 0, heartbeatIntervalMs: 100 })) {
        seen.push(change);
        progress.emit("step");
        if (seen.length === 300) {
          return;
        }
      }
    })();
    for (let number = 0; number < 300; number++) {
      await memory.add(`item ${number}`);
      if (number === 100 || number === 200) {
        await until(() => seen.length > 50);
        await server.end(number === 100 ? "SIGKILL" : "SIGTERM");
        await server.again();
      }
    }
    await watching;
    assert.deepEqual(
      seen.map(({ item }) => item?.text),
      Array.from({ length: 300 }, (_, number) => `item ${number}`),
    );
  });

  test("a client that begins while the server is away waits if it is told to", async () => {
    memory = new MemoryClient(server.address, { namespace: "early", waitForReady: true });
    await server.end("SIGKILL");
    const changes = memory.watch({ afterRevision: 0 });
    const first = changes.next();
    const written = memory.add("early");
    await server.again();
    assert.equal((await written).text, "early");
    assert.equal((await first).value?.item?.text, "early");
    await changes.return();
  });

  test("a watch gives up when it is told to", async () => {
    memory = new MemoryClient(server.address, { namespace: "gone" });
    await memory.add("the first");
    const changes = memory.watch({ afterRevision: 0, giveUpAfterMs: 300 });
    assert.equal((await changes.next()).value?.item?.text, "the first");
    await server.end("SIGKILL");
    try {
      await assert.rejects(changes.next(), UnavailableError);
    } finally {
      await server.again();
    }
  });

  test("a response that is lost on the way is asked for again, and the write applied once", async () => {
    const relay = await Relay.start(server.address);
    memory = new MemoryClient(relay.address, { namespace: "lost" });
    try {
      await memory.add("warm");
      relay.cutAtNextAnswer();
      const item = await memory.add("once");
      assert.equal(item.revision, 2);
      const { itemCount } = await memory.namespaceStats();
      assert.equal(itemCount, 2);
      assert.equal(relay.cuts, 1);
    } finally {
      memory.close();
      await relay.stop();
    }
  });

  test("what carries no request id is tried once", async () => {
    const relay = await Relay.start(server.address);
    memory = new MemoryClient(relay.address, { namespace: "lost-for-good" });
    try {
      await memory.add("something");
      relay.cutAtNextAnswer();
      await assert.rejects(memory.deleteNamespace(), UnavailableError);
    } finally {
      memory.close();
      await relay.stop();
    }
  });
});
