// A relay between a client and a server that can lose an answer.

import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

/** A TCP relay before a server that can lose an answer and the connection with it. */
export class Relay {
  readonly #sockets = new Set<Socket>();
  #cutsNext = false;
  cuts = 0;

  private constructor(readonly listener: ReturnType<typeof createServer>) {}

  static async start(target: string): Promise<Relay> {
    const [host, port] = target.split(":");
    const listener = createServer();
    const relay = new Relay(listener);
    listener.on("connection", (near) => relay.#join(near, connect(Number(port), host)));
    await new Promise<void>((listening) => listener.listen(0, "127.0.0.1", listening));
    return relay;
  }

  get address(): string {
    return `127.0.0.1:${(this.listener.address() as AddressInfo).port}`;
  }

  /** Loses the next answer of the server: its first bytes that are more than an acknowledgement. */
  cutAtNextAnswer(): void {
    this.#cutsNext = true;
  }

  async stop(): Promise<void> {
    this.#sockets.forEach((socket) => socket.destroy());
    await new Promise((closed) => this.listener.close(closed));
  }

  #join(near: Socket, far: Socket): void {
    const pair = [near, far];
    for (const socket of pair) {
      this.#sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => pair.forEach((other) => other.destroy()));
    }
    near.on("data", (bytes) => far.write(bytes));
    far.on("data", (bytes: Buffer) => {
      if (this.#cutsNext && hasHeaders(bytes)) {
        this.#cutsNext = false;
        this.cuts++;
        near.resetAndDestroy();
        return;
      }
      near.write(bytes);
    });
  }
}

/** Whether an HTTP/2 frame that begins in these bytes carries headers, as an answer does. */
function hasHeaders(bytes: Buffer): boolean {
  const HEADERS = 1;
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    if (bytes[at + 3] === HEADERS) {
      return true;
    }
  }
  return false;
}
