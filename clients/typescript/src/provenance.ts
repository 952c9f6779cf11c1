// Conversion of provenance to its protobuf message and back.

import type { MessageInitShape } from "@bufbuild/protobuf";

import type { Provenance as Proto, ProvenanceSchema } from "./gen/memory_service/v1/memory_pb.js";
import { SourceKind as Kinds } from "./gen/memory_service/v1/memory_pb.js";
import type { Provenance, SourceKind } from "./items.js";
import { given } from "./requests.js";
import type { TrustFilter } from "./trust-filter.js";
import { enumFrom, enumTo, optionalTimeTo, timestampFrom } from "./values.js";

/**
 * Returns the number of a kind of source.
 *
 * @throws InvalidArgumentError - there is no such kind
 */
export function sourceKindFrom(source: SourceKind, where: string): Kinds {
  return enumFrom<Kinds>(Kinds, source, where);
}

/** Converts a filter by trust and source. */
export function trustFrom({ minTrust, sources = [] }: TrustFilter) {
  return { minTrust, sources: sources.map((source, index) => sourceKindFrom(source, `sources[${index}]`)) };
}

/** Converts a provenance with all its fields. */
export function provenanceFrom(provenance: Provenance, where: string): MessageInitShape<typeof ProvenanceSchema> {
  const { writer = "", credentialId = "", source = "unspecified", sourceUri = "", parentIds = [], model = "" } =
    provenance;
  return {
    writer,
    credentialId,
    source: sourceKindFrom(source, `${where}.source`),
    sourceUri,
    parentIds: [...parentIds],
    model,
    trust: provenance.trust,
    writeTime: given(provenance.writeTime, timestampFrom, `${where}.writeTime`),
  };
}

/** Converts to a provenance; undefined stays undefined. */
export function provenanceTo(provenance: Proto | undefined): Provenance | undefined {
  if (provenance === undefined) {
    return undefined;
  }
  const { writer, credentialId, sourceUri, parentIds, model, trust } = provenance;
  return {
    writer,
    credentialId,
    source: enumTo(Kinds, provenance.source) as SourceKind,
    sourceUri,
    parentIds,
    model,
    trust,
    writeTime: optionalTimeTo(provenance.writeTime),
  };
}
