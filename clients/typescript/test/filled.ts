// Messages with every field set, made out of their descriptors.

import type { DescField, DescMessage, JsonValue } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";

/** Whether a field is set; `parent` is the name of its message. */
export type Wanted = (parent: string, field: DescField) => boolean;

/**
 * Returns a message in protobuf's JSON with every wanted field set to a value other than its default.
 * `variant` selects the kind of each oneof: the values from 0 to `VARIANTS` - 1 cover every kind.
 */
export function filled(desc: DescMessage, variant: number, wanted: Wanted): JsonValue {
  const json: Record<string, JsonValue> = {};
  for (const field of desc.fields.filter((each) => isChosen(each, variant) && wanted(desc.name, each))) {
    const value = singular(field, variant, wanted);
    if (field.fieldKind === "list") {
      json[field.jsonName] = [value];
    } else {
      json[field.jsonName] = field.fieldKind === "map" ? { "a key": value } : value;
    }
  }
  return json;
}

/** The most kinds that there are of one thing: those of a batch's operation. */
export const VARIANTS = 6;

function isChosen(field: DescField, variant: number): boolean {
  const { oneof } = field;
  return oneof === undefined || oneof.fields[variant % oneof.fields.length] === field;
}

function singular(field: DescField, variant: number, wanted: Wanted): JsonValue {
  if (field.message) {
    return message(field.message, variant, wanted);
  }
  if (field.enum) {
    const { values } = field.enum;
    return values[1 + (variant % (values.length - 1))]!.name;
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return `the ${field.name}`;
    case ScalarType.BOOL:
      return true;
    case ScalarType.BYTES:
      return Buffer.from("bytes").toString("base64");
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return 0.5;
    case ScalarType.INT64:
      // Another one in each message, so that none is taken for that of another.
      return String(Number.MAX_SAFE_INTEGER - field.parent.name.length);
    default:
      return 77;
  }
}

function message(desc: DescMessage, variant: number, wanted: Wanted): JsonValue {
  switch (desc.name) {
    case "Timestamp":
      return "2026-05-01T12:00:00.123456Z";
    case "Duration":
      return "1.500s";
    case "Struct":
      return { list: [1, null, "x"], "": {} };
    case "Value":
      return [null, { deep: [true, 1.5] }];
    default:
      return filled(desc, variant, wanted);
  }
}
