// What the methods of a client need.

import type { Transport } from "./transport.js";

/** A connection, and the namespace that calls are about. */
export abstract class Bound {
  /** @internal */
  protected declare readonly transport: Transport;
  /** @internal */
  protected declare readonly boundTo: string;
  /** @internal */
  protected declare readonly isView: boolean;
}

/**
 * Gives a client its connection and its namespace, out of sight of `console.log` and `JSON.stringify`. A
 * view is a client that shares the connection of another.
 *
 * @internal
 */
export function bind<B extends Bound>(client: B, transport: Transport, boundTo: string, isView: boolean): B {
  const values = Object.entries({ transport, boundTo, isView }).map(([name, value]) => [name, { value }]);
  return Object.defineProperties(client, Object.fromEntries(values) as PropertyDescriptorMap);
}

/**
 * Adds the methods of classes to the prototype of another.
 *
 * @internal
 */
export function takeOver(target: { prototype: Bound }, classes: readonly { prototype: Bound }[]): void {
  for (const { prototype } of classes) {
    const { constructor: _, ...methods } = Object.getOwnPropertyDescriptors(prototype);
    Object.defineProperties(target.prototype, methods);
  }
}
