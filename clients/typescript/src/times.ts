// Times, as callers pass and get them.
//
// The server stores microseconds, and a JavaScript Date only milliseconds. So times are returned as text in UTC
// with six digits after the second, "2026-05-01T12:00:00.123456Z": sending them again loses nothing,
// `new Date(time)` and `Temporal.Instant.from(time)` accept them, JSON does not change them, and they compare with
// `<` and sort as text, because all have the same form.

/** A time as the server returns it: "2026-05-01T12:00:00.123456Z", always UTC and always six digits. */
export type Time = string;

/**
 * A time to send: a Date, or ISO 8601 (RFC 3339) text with a zone, such as
 * "2026-05-01T14:00:00.123456+02:00".
 */
export type TimeInput = Date | string;
