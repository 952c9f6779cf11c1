// A real server process for tests: started on a free port, ended by its own handle.

import type { ChildProcessByStdio } from "node:child_process";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

/** The folder of the package, seen from where the tests are compiled to. */
export const packageFolder = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");

export const COMMAND =
  process.env["MEMORY_SERVICE_COMMAND"] ?? resolve(packageFolder, "../../.venv/bin/memory-service");

/** Why tests that need a server are skipped: the server is not installed. False: they run. */
export const skip = reasonToSkip();

function reasonToSkip(): string | false {
  if (existsSync(COMMAND)) {
    return false;
  }
  const reason = `there is no server at ${COMMAND}; set MEMORY_SERVICE_COMMAND`;
  if (process.env["CI"] === "true") {
    throw new Error(reason);
  }
  return reason;
}

/** A running `memory-service serve` with a separate data folder, which survives restarts. */
export class Server {
  readonly #folder: string;
  readonly #flags: readonly string[];
  #process: ChildProcessByStdio<null, Readable, Readable> | undefined;
  #log: string[] = [];
  address = "127.0.0.1:0";

  private constructor(folder: string, flags: readonly string[]) {
    this.#folder = folder;
    this.#flags = flags;
  }

  /** Starts a server and returns it when it listens. */
  static async start(...flags: string[]): Promise<Server> {
    const server = new Server(await mkdtemp(join(tmpdir(), "memory-client-")), flags);
    await server.#listen();
    return server;
  }

  /** Starts the server again, on the port that it had. */
  async again(): Promise<void> {
    await this.#listen();
  }

  /** Ends the server with a signal: SIGKILL as a crash would, SIGTERM lets it drain. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) {
      return;
    }
    const ended = new Promise((done) => child.once("close", done));
    child.kill(signal);
    await ended;
  }

  /** Ends the server and removes its data. */
  async remove(): Promise<void> {
    await this.end("SIGKILL");
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #listen(): Promise<void> {
    const address = ["--address", this.address, "--data-dir", this.#folder];
    // Settings of the caller's shell must not reach the server under test.
    const inherited = Object.entries(process.env).filter(([name]) => !/^(MEMORY_SERVICE_|OPENAI_)/.test(name));
    const child = spawn(COMMAND, ["serve", ...address, ...this.#flags], {
      env: Object.fromEntries(inherited),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = child;
    createInterface(child.stderr).on("line", (line) => (this.#log = [...this.#log.slice(-100), line]));
    this.address = await new Promise((listening, failed) => {
      createInterface(child.stdout).on("line", (line) => {
        const [, where] = /listening on (\S+)/.exec(line) ?? [];
        if (where !== undefined) {
          listening(where);
        }
      });
      child.once("error", failed);
      child.once("exit", (code) => failed(new Error(`the server ended with ${code}:\n${this.#log.join("\n")}`)));
    });
  }
}
