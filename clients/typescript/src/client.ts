// The client, put together of the methods of all services.
//
// Each service has a file of its own with an abstract class that extends `Bound` and holds its methods:
//
//     export abstract class StateMethods extends Bound {
//       async loadState(key: string, options: CallOptions = {}): Promise<StateEntry> {
//         const request = { namespace: this.boundTo, key };
//         const response = await this.transport.unary(StateService.method.loadState, request, options);
//         return entryTo(response.entry);
//       }
//     }
//
// These classes have no constructors and no fields. `MemoryClient` takes over their methods twice: for the
// compiler by the interface of its name, which extends them all, and at run time by `METHODS`, whose
// methods are copied to its prototype. A new service is a new class in both lists.

/// <reference lib="esnext.disposable" preserve="true" />

import { AdminMethods } from "./admin.js";
import { bind, Bound, takeOver } from "./bound.js";
import { InteractionMethods } from "./interactions.js";
import { KnowledgeMethods } from "./knowledge.js";
import { MemoryMethods } from "./memory.js";
import type { ClientOptions } from "./options.js";
import { settingsFrom } from "./options.js";
import { OverseerMethods } from "./overseer.js";
import { StateMethods } from "./state.js";
import { Transport } from "./transport.js";
import { UserMemoryMethods } from "./user-memories.js";

const METHODS = [
  MemoryMethods,
  StateMethods,
  UserMemoryMethods,
  InteractionMethods,
  KnowledgeMethods,
  OverseerMethods,
  AdminMethods,
];

export interface MemoryClient
  extends MemoryMethods,
    StateMethods,
    UserMemoryMethods,
    InteractionMethods,
    KnowledgeMethods,
    OverseerMethods,
    AdminMethods {}

/**
 * A client of one memory server, or of several equal ones, bound to one namespace.
 *
 *     const memory = new MemoryClient("127.0.0.1:50051", { namespace: "ada" });
 *     await memory.add("Ada likes tea");
 *     for (const result of await memory.retrieve("what does she drink?")) {
 *       console.log(result.text);
 *     }
 *     memory.close();
 *
 * Every method rejects with a `MemoryServiceError`, or rather one of its subclasses, when the server
 * refuses or cannot be reached. The first call opens the connection to its server, and all calls
 * share it.
 */
export class MemoryClient extends Bound {
  /**
   * Makes a client of the server at `address`, a host and a port.
   *
   * Several of them, with commas between them or in a list, are equal servers of the same records. Each namespace
   * has one that its calls go to, and others when that is away; a call without a namespace goes to the first that
   * is up.
   *
   * @throws RangeError - an address is none or there twice, or an option is out of range
   * @throws TypeError - a header has a name or a value that HTTP does not allow
   */
  constructor(address: string | readonly string[] = "127.0.0.1:50051", options: ClientOptions = {}) {
    super();
    bind(this, new Transport(settingsFrom(address, options)), options.namespace ?? "default", false);
  }

  /**
   * Returns this client bound to another namespace, over the same connections.
   *
   * Cheap enough for every call. Closing it closes nothing.
   */
  namespace(name: string): MemoryClient {
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

takeOver(MemoryClient, METHODS);
