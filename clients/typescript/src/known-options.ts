// A check for options that no method has, which JavaScript would silently ignore.

/** The names of an object's properties. The value of a property that is such an object itself is its names. */
export interface Known {
  readonly [name: string]: true | Known;
}

/** The names of all properties of `T`: the compiler reports a missing one. */
export type Names<T> = { readonly [K in keyof T]-?: true | Known };

/** Returns names of properties that are not objects of options. */
export function named<K extends string>(...names: readonly K[]): { readonly [P in K]: true } {
  return Object.fromEntries(names.map((name) => [name, true])) as { readonly [P in K]: true };
}

/** The names of each argument of a method that is an object of options. Null: another kind of argument. */
export type Arguments = readonly (Known | null)[];

/**
 * Checks that an object has no unknown property; `where` names it in errors. Undefined has none.
 *
 * @throws TypeError - it has one, or is not an object
 */
export function requireKnown(value: unknown, known: Known, where: string): void {
  if (value === undefined) {
    return;
  }
  if (typeof value !== "object" || value === null) {
    // The value may be a credential: the error does not show it.
    throw new TypeError(`${where}: the options must be an object, not ${value === null ? "null" : typeof value}`);
  }
  for (const [name, entry] of Object.entries(value)) {
    const inner = Object.hasOwn(known, name) ? known[name] : undefined;
    if (inner === undefined) {
      const names = Object.keys(known).sort().join(", ");
      throw new TypeError(`${where}: unknown option ${JSON.stringify(name)}; the options are ${names}`);
    }
    if (inner !== true && typeof entry === "object" && entry !== null) {
      requireKnown(entry, inner, `${where}.${name}`);
    }
  }
}

/** A method of a client. */
export type Method = (this: unknown, ...given: unknown[]) => unknown;

const AsyncFunction = (async () => {}).constructor;

/** Returns a method with a check of its options: an async one rejects, another one throws. */
export function withKnownOptions(name: string, method: Method, known: Arguments): Method {
  return function (...given) {
    try {
      known.forEach((names, index) => {
        // The options of an overloaded method may come later.
        const isQuery = typeof given[index] === "string" && known.lastIndexOf(names) > index;
        if (names !== null && !isQuery) {
          requireKnown(given[index], names, name);
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
