// Messages to an agent, its responses and its reflections, as plain values.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";

import type { Degradation } from "./degradation.js";
import { degradedTo } from "./degradation.js";
import type { Contribution, Found } from "./found.js";
import { explanationTo } from "./found.js";
import type {
  ContextResult as ProtoResult,
  Interaction as ProtoInteraction,
  InteractionPair as ProtoPair,
  OriginalMessageSchema,
  RetrieveRelevantContextResponse,
  StoreInteractionResponse,
  StoreReflectionResponse,
  StoreResponseResponse,
} from "./gen/memory_service/v1/interaction_pb.js";
import { InteractionKind as Kinds, InteractionSchema } from "./gen/memory_service/v1/interaction_pb.js";
import type { Provenance } from "./items.js";
import type { JsonObject } from "./json.js";
import { provenanceTo } from "./provenance.js";
import { given } from "./requests.js";
import type { Time, TimeInput } from "./times.js";
import { enumTo, objectTo, optionalTimeTo, timestampFrom } from "./values.js";

/**
 * The kind of an interaction.
 *
 * - `"message"`: a message to the agent.
 * - `"response"`: a response of the agent.
 * - `"reflection"`: a thought of the agent about its own actions.
 * - `"unspecified"`: a kind that this client does not know.
 */
export type InteractionKind = "message" | "response" | "reflection" | "unspecified";

/** Identifies the message that a response answers by its contents. */
export interface OriginalMessageInput {
  /** The exact content, at most 64 KiB. */
  readonly content: string;
  /** Its sender. Left out: any. */
  readonly sender?: string;
  /** When it was said. Left out: any time. */
  readonly createTime?: TimeInput;
}

/** The message that a response answers, as it is stored now. */
export interface OriginalMessage {
  /** Its content. */
  readonly content: string;
  /** Its sender. */
  readonly sender: string;
  /** When it was said. */
  readonly createTime?: Time | undefined;
  /** Its writer and trust. Undefined: written without a credential, and so fully trusted. */
  readonly provenance?: Provenance | undefined;
}

/** A message, a response or a reflection, as stored. */
export interface Interaction {
  /** Unique among the items of its namespace. */
  readonly id: string;
  /** Whether it is a message, a response or a reflection. */
  readonly kind: InteractionKind;
  /** The text. */
  readonly content: string;
  /** The sender of a message, or the agent's name for a response or a reflection. */
  readonly sender: string;
  /** The conversation that it belongs to. Empty: none. */
  readonly sessionId: string;
  /** The message that a response answers. Empty: not a response, or not linked to a message. */
  readonly inResponseTo: string;
  /** That message as it is stored now. Undefined: not linked, deleted, or omitted in a pair. */
  readonly originalMessage?: OriginalMessage | undefined;
  /** The interactions that a reflection is about. */
  readonly interactionIds: readonly string[];
  /** When it was said. */
  readonly createTime?: Time | undefined;
  /** When it was last written. */
  readonly updateTime?: Time | undefined;
  /** When it expires. Undefined: never. */
  readonly expireTime?: Time | undefined;
  /** For exact matching. */
  readonly labels: Readonly<Record<string, string>>;
  /** JSON values stored with it. */
  readonly metadata: JsonObject;
  /** Revision of the namespace at which it was last written. */
  readonly revision: number;
  /** Its writer, sources and trust. Undefined: written without a credential, and so fully trusted. */
  readonly provenance?: Provenance | undefined;
}

/** An interaction that this client wrote. */
export interface StoredInteraction extends Interaction {
  /** What the server could not do, such as embedding the text. Empty: it did everything. */
  readonly degraded: readonly Degradation[];
}

/** One message, response or reflection found. */
export interface ContextResult {
  /** Its `kind` marks reflections. */
  readonly interaction: Interaction;
  /** For a prompt: the content, after "SYSTEM REFLECTION: " for a reflection. */
  readonly text: string;
  /** Higher is better. Do not compare scores of reflections with other scores. */
  readonly score: number;
  /** Shares that add up to the score. Empty without `explain`. */
  readonly explanation: readonly Contribution[];
}

/** Interactions that match a text: messages and responses, then reflections, each best first. */
export interface RelevantContext extends Found<ContextResult> {
  /** Estimated tokens of the results' texts. */
  readonly tokenCount: number;
}

/** A message with the responses to it. */
export interface InteractionPair {
  /** The message to the agent. */
  readonly message: Interaction;
  /** In the order in which they were written, at most the first 20. */
  readonly responses: readonly Interaction[];
  /** Number of all its responses. */
  readonly responseCount: number;
}

/** @internal */
export function originalFrom(original: OriginalMessageInput): MessageInitShape<typeof OriginalMessageSchema> {
  const { content, sender = "", createTime } = original;
  return { content, sender, createTime: given(createTime, timestampFrom, "originalMessage.createTime") };
}

/** @internal */
export function interactionTo(interaction: ProtoInteraction | undefined): Interaction {
  const proto = interaction ?? create(InteractionSchema);
  return {
    id: proto.id,
    kind: enumTo(Kinds, proto.kind),
    content: proto.content,
    sender: proto.sender,
    sessionId: proto.sessionId,
    inResponseTo: proto.inResponseTo,
    originalMessage: proto.originalMessage && {
      content: proto.originalMessage.content,
      sender: proto.originalMessage.sender,
      createTime: optionalTimeTo(proto.originalMessage.createTime),
      provenance: provenanceTo(proto.originalMessage.provenance),
    },
    interactionIds: proto.interactionIds,
    createTime: optionalTimeTo(proto.createTime),
    updateTime: optionalTimeTo(proto.updateTime),
    expireTime: optionalTimeTo(proto.expireTime),
    labels: proto.labels,
    metadata: objectTo(proto.metadata),
    revision: Number(proto.revision),
    provenance: provenanceTo(proto.provenance),
  };
}

/** @internal */
export function storedTo(
  response: StoreInteractionResponse | StoreResponseResponse | StoreReflectionResponse,
): StoredInteraction {
  return { ...interactionTo(response.interaction), degraded: degradedTo(response.degraded) };
}

/** @internal */
export function contextTo(response: RetrieveRelevantContextResponse): RelevantContext {
  return Object.assign(response.results.map(resultTo), {
    tokenCount: response.tokenCount,
    degraded: degradedTo(response.degraded),
    revision: Number(response.revision),
  });
}

function resultTo({ interaction, text, score, explanation }: ProtoResult): ContextResult {
  return { interaction: interactionTo(interaction), text, score, explanation: explanationTo(explanation) };
}

/** @internal */
export function pairTo({ message, responses, responseCount }: ProtoPair): InteractionPair {
  return { message: interactionTo(message), responses: responses.map(interactionTo), responseCount };
}
