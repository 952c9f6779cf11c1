// An encrypted connection, to a server with a certificate made for the test.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createSecureServer } from "node:http2";
import type { Http2SecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import { MemoryClient, UnauthenticatedError, UnavailableError } from "../src/index.js";

const run = promisify(execFile);
const skip = await run("openssl", ["version"]).then(
  () => false,
  () => "there is no openssl to make a certificate",
);

describe("an encrypted connection", { skip, timeout: 60_000 }, () => {
  let folder: string;
  let certificate: string;
  let gate: Http2SecureServer;
  let address: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "memory-tls-"));
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const names = ["-subj", "/CN=memory.test", "-addext", "subjectAltName=DNS:memory.test"];
    const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    await run("openssl", ["req", "-x509", ...made, ...names, "-keyout", key, "-out", cert]);
    certificate = await readFile(cert, "utf8");
    gate = createSecureServer({ key: await readFile(key), cert: certificate });
    gate.on("stream", (stream) => {
      const status = { "grpc-status": "16", "grpc-message": "who%20are%20you%3F" };
      stream.respond({ ":status": 200, "content-type": "application/grpc", ...status }, { endStream: true });
    });
    await new Promise<void>((listening) => gate.listen(0, "127.0.0.1", listening));
    address = `127.0.0.1:${(gate.address() as AddressInfo).port}`;
  });

  after(async () => {
    gate.close();
    await rm(folder, { recursive: true, force: true });
  });

  test("a certificate that is trusted, by another name than the address", async () => {
    const tls = { rootCertificates: new TextEncoder().encode(certificate), serverName: "memory.test" };
    const memory = new MemoryClient(address, { tls });
    await assert.rejects(memory.info(), UnauthenticatedError);
    memory.close();
  });

  test("a certificate that is not trusted", async () => {
    for (const tls of [true, { rootCertificates: certificate }]) {
      const memory = new MemoryClient(address, { tls, maxAttempts: 1 });
      await assert.rejects(memory.info(), UnavailableError);
      memory.close();
    }
  });
});
