// Text that UTF-8 can hold.

/**
 * Checks all texts of a request. Protobuf would put U+FFFD in the place of half a surrogate pair, so that
 * another text than the caller's would be stored.
 *
 * @throws TypeError - a text holds half a surrogate pair
 */
export function requireWellFormed(request: unknown, where = "request"): void {
  if (typeof request === "string") {
    if (!request.isWellFormed()) {
      throw new TypeError(`${where}: the text holds half a surrogate pair`);
    }
  } else if (Array.isArray(request)) {
    // Vectors have thousands of elements, and none of them is text.
    if (typeof request[0] !== "number") {
      request.forEach((element) => requireWellFormed(element, where));
    }
  } else if (typeof request === "object" && request !== null && !ArrayBuffer.isView(request)) {
    for (const [key, value] of Object.entries(request)) {
      requireWellFormed(key, where);
      requireWellFormed(value, key);
    }
  }
}
