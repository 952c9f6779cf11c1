// A check that texts can be encoded in UTF-8.

/**
 * Checks all texts of a request. Protobuf would replace half a surrogate pair by U+FFFD, so that the stored text
 * would differ from the caller's.
 *
 * @throws TypeError - a text contains half a surrogate pair
 */
export function requireWellFormed(request: unknown, where = "request"): void {
  if (typeof request === "string") {
    if (!request.isWellFormed()) {
      throw new TypeError(`${where}: the text contains half a surrogate pair`);
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
