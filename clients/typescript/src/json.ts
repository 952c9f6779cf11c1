// What data, metadata and state are made of.

/**
 * Any JSON value. Numbers are doubles; integers of 2^53 and more, up to 1e21, are refused when they are sent,
 * for JavaScript has lost their last digits already: send them as strings.
 */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

/** JSON values by name. A property that is undefined counts as not there. */
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}
