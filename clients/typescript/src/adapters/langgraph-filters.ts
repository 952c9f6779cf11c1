// Filters of LangGraph as expressions of the server.

import { invalid } from "../invalid.js";

const OPERATORS: Readonly<Record<string, string>> = { $gt: ">", $gte: ">=", $lt: "<", $lte: "<=" };

/**
 * Returns the expression for items whose `field` has all the wanted values; "" if none is wanted.
 *
 * A value is JSON, or an object of the operators $eq, $ne, $in, $nin, $gt, $gte, $lt, $lte. A key with dots names a
 * nested value, or one with this very name.
 *
 * @throws InvalidArgumentError - a key contains quotes or a backslash, or an operator is unknown
 */
export function filterOf(field: string, wanted: Readonly<Record<string, unknown>> | undefined): string {
  return Object.entries(wanted ?? {})
    .map(([key, value]) => keyCondition(field, key, value))
    .join(" AND ");
}

function keyCondition(field: string, key: string, value: unknown): string {
  if (key === "" || /['"\\]/.test(key)) {
    throw invalid("filter", `Invalid filter key: ${JSON.stringify(key)}`);
  }
  const parts = key.split(".");
  const paths = parts.length > 1 && !parts.includes("") ? [[key], parts] : [[key]];
  return any(paths.map((path) => condition([field, ...path.map((part) => `"${part}"`)].join("."), value)));
}

function any(conditions: readonly string[]): string {
  return conditions.length === 1 ? conditions[0]! : `(${conditions.join(" OR ")})`;
}

function condition(field: string, value: unknown): string {
  if (value === null || typeof value !== "object" || Array.isArray(value) || Object.keys(value).length === 0) {
    return equal(field, value);
  }
  const entries = Object.entries(value);
  const isOperation = entries.some(([key]) => key.startsWith("$"));
  const each = entries.map(([key, inner]) => (isOperation ? operation : keyCondition)(field, key, inner));
  return `(${each.join(" AND ")})`;
}

function operation(field: string, operator: string, operand: unknown): string {
  switch (operator) {
    case "$eq":
      return equal(field, operand);
    case "$in":
      return isOneOf(field, operand);
    case "$ne": // As in SQL, not of items without the value.
      return `(${field}:* AND NOT ${equal(field, operand)})`;
    case "$nin":
      return `(${field}:* AND NOT ${isOneOf(field, operand)})`;
  }
  const sign = OPERATORS[operator];
  if (sign === undefined) {
    throw invalid("filter", `Unsupported operator: ${operator}`);
  }
  return Number.isNaN(operand) ? never(field) : `${field} ${sign} ${literal(operand)}`;
}

function isOneOf(field: string, operand: unknown): string {
  if (!Array.isArray(operand)) {
    throw invalid("filter", "$in and $nin need an array");
  }
  return operand.length === 0 ? never(field) : any(operand.map((each) => equal(field, each)));
}

function equal(field: string, value: unknown): string {
  return Number.isNaN(value) ? never(field) : `${field} = ${literal(value)}`;
}

/** An expression that holds for no item. */
function never(field: string): string {
  return `(${field} = true AND ${field} = false)`;
}

function literal(value: unknown): string {
  if (typeof value === "number") {
    const finite = Math.min(Math.max(value, -Number.MAX_VALUE), Number.MAX_VALUE);
    return String(finite).replace("+", "");
  }
  const json = JSON.stringify(value) ?? "null";
  return typeof value === "string" ? json.replaceAll("*", "\\*") : json;
}
