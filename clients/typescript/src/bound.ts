// What a client's methods need.

import type { Arguments, Method } from "./shapes.js";
import { checked } from "./shapes.js";
import type { Transport } from "./transport.js";

/** A connection, and the namespace of its calls. */
export abstract class Bound {
  /** @internal */
  protected declare readonly transport: Transport;
  /** @internal */
  protected declare readonly boundTo: string;
  /** @internal */
  protected declare readonly isView: boolean;
}

/**
 * Gives a client its connection and its namespace, hidden from `console.log` and `JSON.stringify`. A view is a
 * client that shares another's connection.
 *
 * @internal
 */
export function bind<B extends Bound>(client: B, transport: Transport, boundTo: string, isView: boolean): B {
  const values = Object.entries({ transport, boundTo, isView }).map(([name, value]) => [name, { value }]);
  return Object.defineProperties(client, Object.fromEntries(values) as PropertyDescriptorMap);
}

/**
 * Copies the methods of classes to the prototype of another class, each with a check of its arguments.
 *
 * @internal
 */
export function takeOver(
  target: { prototype: Bound },
  classes: readonly { prototype: Bound }[],
  known: Readonly<Record<string, Arguments>>,
): void {
  for (const { prototype } of classes) {
    const { constructor: _, ...methods } = Object.getOwnPropertyDescriptors(prototype);
    for (const [name, descriptor] of Object.entries(methods)) {
      const value = checked(descriptor.value as Method, known[name]!);
      Object.defineProperty(target.prototype, name, { ...descriptor, value });
    }
  }
}
