// The error of an argument that cannot be sent.

import { InvalidArgumentError } from "./errors.js";

/** Returns the error of an argument that cannot be sent; its message begins with the field. Empty: all of `within`. */
export function invalid(field: string, problem: string): InvalidArgumentError {
  return new InvalidArgumentError(field === "" ? problem : `${field}: ${problem}`, { code: "INVALID_ARGUMENT", field });
}

/** Runs a conversion whose errors name fields of `where`. */
export function within<R>(where: string, convert: () => R): R {
  try {
    return convert();
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) {
      throw error;
    }
    const { field, message } = error;
    throw field === "" ? invalid(where, message) : invalid(`${where}.${field}`, message.slice(field.length + 2));
  }
}

/** Names the type of a value. Not the value, which may be a credential. */
export function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

/** A value as an error shows it. */
export function shown(value: unknown): string {
  if (value !== null && (typeof value === "object" || typeof value === "function")) {
    return `a value of type ${typeOf(value)}`;
  }
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
