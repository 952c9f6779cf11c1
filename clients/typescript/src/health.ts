// gRPC's health check, grpc.health.v1: one method, described here because no installed package has it.

import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { create, createFileRegistry } from "@bufbuild/protobuf";
import type { DescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";

/** Whether a server takes calls. */
export type HealthStatus = "unknown" | "serving" | "not_serving" | "service_unknown";

const STATUSES: readonly HealthStatus[] = ["unknown", "serving", "not_serving", "service_unknown"];
const PACKAGE = "grpc.health.v1";
const REQUEST = "HealthCheckRequest";
const RESPONSE = "HealthCheckResponse";

/**
 * The health check. Its request has a `service`, its response a `status`.
 *
 * @internal
 */
export const healthCheck = described();

/**
 * Returns the status of a health check's response.
 *
 * @internal
 */
export function statusOf(response: unknown): HealthStatus {
  const { status } = response as { status: number };
  return STATUSES[status] ?? "unknown";
}

function described(): DescMethodUnary {
  const check = { name: "Check", inputType: `.${PACKAGE}.${REQUEST}`, outputType: `.${PACKAGE}.${RESPONSE}` };
  const file = create(FileDescriptorProtoSchema, {
    name: "grpc/health/v1/health.proto",
    package: PACKAGE,
    syntax: "proto3",
    // On the wire an enum is a number.
    messageType: [withField(REQUEST, "service", Type.STRING), withField(RESPONSE, "status", Type.INT32)],
    service: [{ name: "Health", method: [check] }],
  });
  const service = createFileRegistry(file, () => undefined).getService(`${PACKAGE}.Health`);
  return service!.method["check"] as DescMethodUnary;
}

function withField(name: string, field: string, type: Type): MessageInitShape<typeof DescriptorProtoSchema> {
  return { name, field: [{ name: field, number: 1, type, label: Label.OPTIONAL }] };
}
