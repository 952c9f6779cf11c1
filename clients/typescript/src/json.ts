// JSON values, in data, metadata and state.

/**
 * Any JSON value. Numbers are doubles. Integers from 2^53 up to 1e21 are rejected when sent, because JavaScript
 * has already lost their last digits: send them as strings.
 */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

/** JSON values by name. An undefined property counts as missing. */
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}
