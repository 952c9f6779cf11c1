// What the arguments of methods may be. JavaScript ignores the types of arguments and the names of options.

import { invalid, shown, typeOf } from "./invalid.js";

/** Throws an `InvalidArgumentError` for a value that cannot be sent; `where` names it. */
export type Check = (value: unknown, where: string) => void;

/** What each property of an object may be. Undefined: it is not given. */
export interface Shape {
  readonly [name: string]: Check | Shape;
}

/** A shape with the names of all properties of `T`: the compiler reports a missing one. */
export type Names<T> = { readonly [K in keyof T]-?: Check | Shape };

/** The arguments of a method, in order. Options are the last. */
export type Arguments = Shape & { readonly options: Shape };

/** Returns properties that all have the same check. */
export function each<K extends string>(check: Check, ...names: readonly K[]): { readonly [P in K]: Check } {
  return Object.fromEntries(names.map((name) => [name, check])) as { readonly [P in K]: Check };
}

/** Any JSON value, which its conversion to protobuf checks. */
export const json: Check = () => {};

/** A value that its conversion to protobuf checks, or that is not sent. */
export const converted: Check = (value, where) => {
  if (value === undefined || value === null) {
    throw invalid(where, `must not be ${value}`);
  }
};

function typed(name: string, isOf: (value: unknown) => boolean): Check {
  return (value, where) => {
    if (!isOf(value)) {
      throw invalid(where, `must be ${name}, not ${typeOf(value)}`);
    }
  };
}

const string = typed("a string", (value) => typeof value === "string");
const array = typed("an array", Array.isArray);

/** A string. Protobuf would replace half a surrogate pair by U+FFFD, and so store another text. */
export const text: Check = (value, where) => {
  string(value, where);
  if (!(value as string).isWellFormed()) {
    throw invalid(where, "the text contains half a surrogate pair");
  }
};

export const flag = typed("a boolean", (value) => typeof value === "boolean");
export const number = typed("a number", (value) => typeof value === "number");
export const bytes = typed("a Uint8Array", (value) => value instanceof Uint8Array);
export const callable = typed("a function", (value) => typeof value === "function");

/** A limit of time in milliseconds. */
export const limit: Check = (value, where) => {
  number(value, where);
  if (Number.isNaN(value)) {
    throw invalid(where, "NaN is not a number of milliseconds");
  }
};

/** A signal, also one of another implementation. */
export const signal = typed("an AbortSignal", (value) => {
  const { aborted, addEventListener, throwIfAborted } = Object(value) as Partial<AbortSignal>;
  return typeof aborted === "boolean" && [addEventListener, throwIfAborted].every((each) => typeof each === "function");
});

/** An array whose elements meet a check. */
export function list(check: Check | Shape): Check {
  return (value, where) => {
    array(value, where);
    (value as unknown[]).forEach((element, index) => requireShape(element, check, `${where}[${index}]`));
  };
}

export const texts = list(text);

/** An object of strings. */
export const labels: Check = (value, where) => {
  requireObject(value, where);
  for (const [key, entry] of Object.entries(value)) {
    text(key, where);
    text(entry, `${where}.${key}`);
  }
};

export function orNull(check: Check): Check {
  return (value, where) => value === null || check(value, where);
}

/** A value of one type that meets the check of this type, or anything else that meets the other. */
export function either(type: "string" | "boolean", check: Check, other: Check | Shape): Check {
  return (value, where) => (typeof value === type ? check(value, where) : requireShape(value, other, where));
}

/** Checks that a value is a plain object: of a Map, nothing would be sent. */
function requireObject(value: unknown, where: string): asserts value is object {
  if (typeOf(value) !== "object" || value instanceof Map || value instanceof Set) {
    const named = value instanceof Map ? "Map" : value instanceof Set ? "Set" : typeOf(value);
    throw invalid(where, `must be an object, not ${named}`);
  }
}

/** Checks the options of a method, whose names stand alone in errors. */
export function requireOptions(value: unknown, shape: Shape): void {
  requireObject(value, "options");
  requireShape(value, shape, "");
}

/** Checks that a value is as described; an object must not have other properties. `where` names it in errors. */
export function requireShape(value: unknown, shape: Check | Shape, where: string): void {
  if (typeof shape === "function") {
    shape(value, where);
    return;
  }
  requireObject(value, where);
  for (const [name, entry] of Object.entries(value)) {
    const field = where === "" ? name : `${where}.${name}`;
    if (!Object.hasOwn(shape, name)) {
      throw invalid(field, `unknown option; the options are ${Object.keys(shape).sort().join(", ")}`);
    }
    if (entry !== undefined) {
      requireShape(entry, shape[name]!, field);
    }
  }
}

/** Checks the properties that the shape names, and ignores others. */
export function requireProperties(value: unknown, shape: Shape, where = ""): void {
  requireObject(value, where);
  const known = Object.entries(value).filter(([name]) => Object.hasOwn(shape, name));
  requireShape(Object.fromEntries(known), shape, where);
}

/** Returns the shape that the `type` of an object selects. */
export function shapeOf<K extends string>(value: unknown, shapes: Readonly<Record<K, Shape>>, where: string): Shape {
  requireObject(value, where);
  const { type } = value as { type?: unknown };
  if (typeof type !== "string" || !Object.hasOwn(shapes, type)) {
    const field = where === "" ? "type" : `${where}.type`;
    throw invalid(field, `${shown(type)} is not one of ${Object.keys(shapes).join(", ")}`);
  }
  return shapes[type as K];
}

/** A method of a client. */
export type Method = (this: unknown, ...given: never[]) => unknown;

const AsyncFunction = (async () => {}).constructor;

/**
 * Returns a method that checks its arguments: an async one rejects, another one throws. Arguments before the first
 * that has a default are required.
 */
export function checked(method: Method, known: Arguments): Method {
  const shapes = Object.entries(known);
  return function (...given) {
    try {
      shapes.forEach(([name, shape], index) => {
        if (given[index] !== undefined || index < method.length) {
          if (name === "options") {
            requireOptions(given[index], known.options);
          } else {
            requireShape(given[index], shape, name);
          }
        }
      });
    } catch (error) {
      if (method instanceof AsyncFunction) {
        return Promise.reject(error);
      }
      throw error;
    }
    return method.apply(this, given);
  };
}
