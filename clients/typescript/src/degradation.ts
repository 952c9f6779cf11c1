// Reports of what the server could not do for an answer.

import type { Degradation as ProtoDegradation } from "./gen/memory_service/v1/memory_pb.js";
import { DegradationReason as Reasons } from "./gen/memory_service/v1/memory_pb.js";

/** Something that the server could not do for an answer. */
export interface Degradation {
  /** For programs, such as "NO_EMBEDDER". */
  readonly reason: string;
  /** For humans. */
  readonly message: string;
}

/** @internal */
export function degradedTo(degraded: readonly ProtoDegradation[]): readonly Degradation[] {
  return degraded.map(({ reason, message }) => ({ reason: Reasons[reason] ?? "UNSPECIFIED", message }));
}
