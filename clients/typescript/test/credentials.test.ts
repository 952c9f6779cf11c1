// Credentials, and encryption with certificates on both sides.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { Http2Server } from "node:http2";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import type { ClientOptions, TlsOptions } from "../src/index.js";
import {
  InvalidArgumentError,
  MemoryClient,
  PermissionDeniedError,
  UnauthenticatedError,
  UnavailableError,
} from "../src/index.js";
import { COMMAND, packageFolder, Server, skip } from "./server.js";

/** Makes a unary call, a stream and an upload, and returns what they failed with. */
async function everyKind(memory: MemoryClient): Promise<unknown[]> {
  const failed = (error: unknown) => error;
  const streamed = async () => {
    for await (const record of memory.export()) {
      assert.fail(`there is nothing to export, not ${JSON.stringify(record)}`);
    }
  };
  return [
    await memory.reset().then(() => undefined, failed),
    await streamed().then(() => undefined, failed),
    await memory.importItems([{ content: "one" }]).then(() => undefined, failed),
  ];
}

describe("credentials", { timeout: 60_000 }, () => {
  let gate: Http2Server;
  let address: string;
  let asked: string[];

  // Serves tokens that begin with "good", denies "weak" ones permission, and answers with nothing.
  before(async () => {
    gate = createServer();
    gate.on("stream", (stream, headers) => {
      const sent = String(headers["authorization"] ?? "");
      asked.push(sent);
      const status = sent.startsWith("Bearer good") ? "0" : sent.startsWith("Bearer weak") ? "7" : "16";
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status }));
      stream.resume();
      // An empty message.
      stream.end(status === "0" ? Buffer.alloc(5) : undefined);
    });
    await new Promise<void>((listening) => gate.listen(0, "127.0.0.1", listening));
    address = `127.0.0.1:${(gate.address() as AddressInfo).port}`;
  });

  after(() => gate.close());

  async function failures(options: ClientOptions): Promise<unknown[]> {
    asked = [];
    const memory = new MemoryClient(address, options);
    try {
      return await everyKind(memory);
    } finally {
      memory.close();
    }
  }

  test("an API key goes with calls of every kind", async () => {
    assert.deepEqual(await failures({ apiKey: "good" }), [undefined, undefined, undefined]);
    assert.deepEqual(asked, ["Bearer good", "Bearer good", "Bearer good"]);
  });

  test("a token source is asked for each call", async () => {
    let count = 0;
    const tokenSource = async () => `good-${++count}`;
    assert.deepEqual(await failures({ tokenSource }), [undefined, undefined, undefined]);
    assert.deepEqual(asked, ["Bearer good-1", "Bearer good-2", "Bearer good-3"]);
  });

  test("what a token source throws the call rejects with", async () => {
    const none = new Error("no token today");
    const tokenSource = () => {
      throw none;
    };
    assert.deepEqual(await failures({ tokenSource }), [none, none, none]);
    for (const error of await failures({ tokenSource: () => "s3cret\n" })) {
      assert.ok(error instanceof InvalidArgumentError && error.field === "tokenSource");
      assert.doesNotMatch(String(error), /s3cret/);
    }
    assert.deepEqual(asked, []);
  });

  test("a refusal is an error of its own and never tried again", async () => {
    for (const [apiKey, Refusal] of [
      ["bad", UnauthenticatedError],
      ["weak", PermissionDeniedError],
    ] as const) {
      for (const error of await failures({ apiKey })) {
        assert.ok(error instanceof Refusal, String(error));
      }
      assert.equal(asked.length, 3);
    }
  });

  test("credentials are not sent over a network unless encrypted", () => {
    const headers = { Authorization: "Bearer secret" };
    for (const credential of [{ apiKey: "secret" }, { tokenSource: () => "secret" }, { headers }]) {
      for (const host of ["memory.example.org", "127.0.0.1.example.org", "10.0.0.1", "[2001:db8::1]"]) {
        assert.throws(() => new MemoryClient(`${host}:50051`, credential), { field: Object.keys(credential)[0]! });
        new MemoryClient(`${host}:50051`, { ...credential, tls: true }).close();
        new MemoryClient(`${host}:50051`, { ...credential, allowInsecureToken: true }).close();
      }
      for (const host of ["127.0.0.1", "127.8.8.8", "localhost", "[::1]"]) {
        new MemoryClient(`${host}:50051`, credential).close();
      }
    }
  });

  test("settings that cannot be are refused without showing secrets", () => {
    const refused: ClientOptions[] = [
      { apiKey: "" },
      { apiKey: "secret\n" },
      { apiKey: "secret", tokenSource: () => "secret" },
      { apiKey: "secret", headers: { authorization: "Bearer secret" } },
      { headers: { authorization: "Bearer se\ncret" } },
    ];
    for (const options of refused) {
      assert.throws(
        () => new MemoryClient("127.0.0.1:1", options),
        (error) => error instanceof Error && !/secret|se\ncret/.test(error.message),
      );
    }
  });
});

describe("certificates on both sides", { skip, timeout: 120_000 }, () => {
  let folder: string;
  let server: Server;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "memory-certificates-"));
    const python = join(dirname(COMMAND), "python");
    await promisify(execFile)(python, [resolve(packageFolder, "../../tests/certificates.py"), folder]);
    const own = ["--tls-certificate", join(folder, "server.pem"), "--tls-key", join(folder, "server.key")];
    server = await Server.start("--embedder", "none", ...own, "--tls-client-ca", join(folder, "ca.pem"));
  });

  after(async () => {
    await server.remove();
    await rm(folder, { recursive: true, force: true });
  });

  async function trusting(authority: string, presented?: string): Promise<TlsOptions> {
    const read = (name: string) => readFile(join(folder, name));
    const own = presented && {
      certificate: await read(`${presented}.pem`),
      key: await read(`${presented}.key`),
    };
    return { rootCertificates: await read(`${authority}.pem`), ...(own || {}) };
  }

  test("a client with a certificate is served", async () => {
    const memory = new MemoryClient(server.address, { tls: await trusting("ca", "client") });
    assert.equal((await memory.add("hello")).id.length > 0, true);
    memory.close();
  });

  for (const [how, authority, presented] of [
    ["no certificate", "ca", undefined],
    ["another authority's", "ca", "stranger"],
    ["an expired one", "ca", "expired-client"],
    ["another authority", "stranger-ca", "client"],
  ] as const) {
    test(`without trust there is no connection: ${how}`, async () => {
      const memory = new MemoryClient(server.address, { tls: await trusting(authority, presented), maxAttempts: 1 });
      await assert.rejects(memory.info(), UnavailableError);
      memory.close();
    });
  }

  test("plaintext to an encrypted port", async () => {
    const memory = new MemoryClient(server.address, { maxAttempts: 1 });
    await assert.rejects(memory.info(), UnavailableError);
    memory.close();
  });

  test("an expired certificate of the server", async () => {
    const own = ["--tls-certificate", join(folder, "expired.pem"), "--tls-key", join(folder, "expired.key")];
    const expired = await Server.start("--embedder", "none", ...own);
    const memory = new MemoryClient(expired.address, { tls: await trusting("ca"), maxAttempts: 1 });
    await assert.rejects(memory.info(), UnavailableError);
    memory.close();
    await expired.remove();
  });
});
