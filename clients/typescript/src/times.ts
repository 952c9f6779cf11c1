// Times and lengths of time, as callers give and get them.
//
// The server keeps times to the microsecond, a JavaScript Date holds milliseconds. So times come back as
// text in UTC with six digits after the second, "2026-05-01T12:00:00.123456Z": nothing is lost when they
// are sent again, `new Date(time)` and `Temporal.Instant.from(time)` take them, JSON keeps them as they
// are, and since all have the same form they can be compared with `<` and sorted as text.

/** A time as the server keeps it: "2026-05-01T12:00:00.123456Z", always UTC and always six digits. */
export type Time = string;

/**
 * A time to send: a Date, or text as ISO 8601 (RFC 3339) that names its zone, such as
 * "2026-05-01T14:00:00.123456+02:00".
 */
export type TimeInput = Date | string;
