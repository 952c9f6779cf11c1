// The client, composed of the methods of all services.
//
// Each service has its own file with an abstract class that extends `Bound` and has its methods:
//
//     export abstract class StateMethods extends Bound {
//       async loadState(key: string, options: CallOptions = {}): Promise<StateEntry> {
//         const request = { namespace: this.boundTo, key };
//         const response = await this.transport.unary(StateService.method.loadState, request, options);
//         return entryTo(response.entry);
//       }
//     }
//
// These classes have no constructors and no fields. `MemoryClient` gets their methods twice: for the compiler,
// from the interface of the same name, which extends them all, and at run time from `METHODS`, whose methods are
// copied to its prototype. Add the class of a new service to both, and its arguments to `ARGUMENTS`:
// the methods of the client reject all others with an `InvalidArgumentError` that names the argument.

/// <reference lib="esnext.disposable" preserve="true" />

import { AdminMethods } from "./admin.js";
import { ARGUMENTS, CLIENT } from "./argument-shapes.js";
import { bind, Bound, takeOver } from "./bound.js";
import { FileMethods } from "./files.js";
import { InteractionMethods } from "./interactions.js";
import { KnowledgeMethods } from "./knowledge.js";
import { MemoryMethods } from "./memory.js";
import type { ClientOptions } from "./options.js";
import { settingsFrom } from "./options.js";
import { OverseerMethods } from "./overseer.js";
import { SessionMethods } from "./sessions.js";
import { requireOptions, text } from "./shapes.js";
import { StateMethods } from "./state.js";
import { Transport } from "./transport.js";
import { UserMemoryMethods } from "./user-memories.js";
import { VersionMethods } from "./versions.js";

const METHODS = [
  MemoryMethods,
  StateMethods,
  UserMemoryMethods,
  InteractionMethods,
  KnowledgeMethods,
  SessionMethods,
  FileMethods,
  OverseerMethods,
  AdminMethods,
  VersionMethods,
];

export interface MemoryClient
  extends MemoryMethods,
    StateMethods,
    UserMemoryMethods,
    InteractionMethods,
    KnowledgeMethods,
    SessionMethods,
    FileMethods,
    OverseerMethods,
    AdminMethods,
    VersionMethods {}

/**
 * A client of one memory server, or of several over the same records, bound to one namespace.
 *
 *     const memory = new MemoryClient("127.0.0.1:50051", { namespace: "ada" });
 *     await memory.add("Ada likes tea");
 *     for (const result of await memory.retrieve("what tea does she like?")) {
 *       console.log(result.text);
 *     }
 *     memory.close();
 *
 * Every method rejects with a subclass of `MemoryServiceError` if an argument cannot be sent, the server refuses the
 * call, or it cannot be reached. The first call to a server opens the connection, and all calls share it.
 */
export class MemoryClient extends Bound {
  /**
   * Makes a client of the server at `address`, a host and a port.
   *
   * Several addresses, in a list or separated by commas, are servers over the same records. Each namespace
   * prefers one of them and uses another while that one is unavailable; a call without a namespace goes to the
   * first that is up.
   *
   * @throws InvalidArgumentError - an address is invalid or repeated, or an option is unknown or invalid; `field`
   *   names it
   */
  constructor(address: string | readonly string[] = "127.0.0.1:50051", options: ClientOptions = {}) {
    super();
    requireOptions(options, CLIENT);
    bind(this, new Transport(settingsFrom(address, options)), options.namespace ?? "default", false);
  }

  /**
   * Returns this client bound to another namespace; it shares the connections.
   *
   * It is cheap enough for every call. Closing it closes nothing.
   */
  namespace(name: string): MemoryClient {
    text(name, "name");
    const view = Object.create(MemoryClient.prototype) as MemoryClient;
    return bind(view, this.transport, name, true);
  }

  /** Ends all calls and closes the connections. */
  close(): void {
    if (!this.isView) {
      this.transport.close();
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}

takeOver(MemoryClient, METHODS, ARGUMENTS);
