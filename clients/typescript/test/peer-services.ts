// Adapters for the services that stand on top of items and state.

import type {
  AddDocumentOptions,
  CheckRelevanceOptions,
  ConsolidateMemoriesOptions,
  DeleteDocumentOptions,
  DeleteMemoryOptions,
  EvaluateForStorageOptions,
  ExtractMemoriesOptions,
  Found,
  GetDocumentOptions,
  HandleMessageOptions,
  JsonValue,
  LastInteractionsOptions,
  ListDocumentsOptions,
  ListMemoriesOptions,
  MemoryCategory,
  PreloadOptions,
  RelevantContextOptions,
  SaveMemoryOptions,
  SearchFragmentsOptions,
  SearchMemoriesOptions,
  SplitOptions,
  StoredInteraction,
  StoreInteractionOptions,
  StoreReflectionOptions,
  StoreResponseOptions,
  UpdateMemoryOptions,
} from "../src/index.js";
import type { InteractionService } from "../src/gen/memory_service/v1/interaction_pb.js";
import type { KnowledgeService } from "../src/gen/memory_service/v1/knowledge_pb.js";
import type { OverseerService } from "../src/gen/memory_service/v1/overseer_pb.js";
import type { UserMemoryService } from "../src/gen/memory_service/v1/user_memory_pb.js";
import type { Adapters } from "./peer-adapters.js";
import { adapter, all, changesOf, required } from "./peer-adapters.js";
import type { Native } from "./peer-messages.js";

type Query = { query?: string };
type Id = { id?: string };

function resultsOf(results: Found<unknown>): object {
  return { results, degraded: results.degraded, revision: results.revision };
}

/** With what `updateMemory` empties a field; those not named here cannot be emptied. */
const MEMORY_CLEARED = {
  content: "",
  category: "unspecified",
  reasoning: "",
  validUntilTime: null,
  expireTime: null,
  labels: {},
  metadata: {},
};

export const USER_MEMORIES: Adapters<typeof UserMemoryService> = {
  saveMemory: adapter<SaveMemoryOptions & { content?: string; category?: MemoryCategory; reasoning?: string }>(
    [
      "content",
      "category",
      "reasoning",
      "requestId",
      "source",
      "explicitRequest",
      "onContradiction",
      "validFromTime",
      "ttlMs",
      "labels",
      "metadata",
      "keepWording",
      "decideBy",
    ],
    (client, { content = "", category = "unspecified", reasoning = "", ...options }) =>
      client.saveMemory(content, category, reasoning, options),
  ),
  searchMemories: adapter<SearchMemoriesOptions & Query>(
    [
      "query",
      "categories",
      "limit",
      "asOfTime",
      "includeHistory",
      "minImportance",
      "labels",
      "sessionId",
      "minScore",
      "mode",
      "maxTokens",
      "explain",
      "pageSize",
      "minTrust",
      "sources",
    ],
    async (client, { query = "", ...options }) => resultsOf(await client.searchMemories(query, options)),
  ),
  listMemories: adapter<ListMemoriesOptions>(
    [
      "pageSize",
      "categories",
      "ids",
      "asOfTime",
      "includeHistory",
      "minImportance",
      "labels",
      "sessionId",
      "startTime",
      "endTime",
      "newestFirst",
      "minTrust",
      "sources",
    ],
    async (client, options) => ({ memories: await all(client.listMemories(options)) }),
  ),
  updateMemory: adapter<UpdateMemoryOptions & { memory?: Native & Id; updateMask?: { paths: string[] } }>(
    ["memory", "updateMask", "expectedVersion", "requestId", "keepWording", "decideBy"],
    (client, { memory, updateMask, ...options }) => {
      const { id = "", importance, ...values } = required(memory, "UpdateMemoryRequest.memory");
      const score = importance && ((importance as Native)["score"] ?? 0);
      const given = score === undefined ? values : { ...values, importance: score };
      return client.updateMemory(id, changesOf(given, updateMask, MEMORY_CLEARED), options);
    },
  ),
  deleteMemory: adapter<DeleteMemoryOptions & Id>(
    ["id", "expectedVersion", "includeHistory", "keepDerived", "requestId"],
    async (client, { id = "", ...options }) => {
      const { count, ...rest } = await client.deleteMemory(id, options);
      return { removedCount: count, ...rest };
    },
  ),
  getPreloadedMemories: adapter<PreloadOptions>(
    ["maxTokens", "categories", "limit", "minImportance", "asOfTime", "labels", "minTrust", "sources", "ifNotRevision"],
    (client, options) => client.getPreloadedMemories(options),
  ),
  extractMemories: adapter<ExtractMemoriesOptions>(
    [
      "messages",
      "sessionId",
      "afterRevision",
      "limit",
      "recalledMemoryIds",
      "categories",
      "dryRun",
      "onContradiction",
      "decideBy",
      "actor",
      "labels",
      "requestId",
    ],
    (client, options) => client.extractMemories(options),
  ),
  consolidateMemories: adapter<ConsolidateMemoriesOptions>(
    ["dryRun", "categories", "memoryIds", "similarityThreshold", "limit", "decideBy", "requestId"],
    (client, options) => client.consolidateMemories(options),
  ),
};

function storedOf(interaction: StoredInteraction): object {
  return { interaction, degraded: interaction.degraded, revision: interaction.revision };
}

type Content = { content?: string };

const STORED = ["content", "createTime", "sessionId", "id", "labels", "metadata", "ttlMs", "requestId"] as const;
const FOUND_AMONG = ["sessionId", "sender", "labels", "startTime", "endTime", "minTrust", "sources"] as const;

export const INTERACTIONS: Adapters<typeof InteractionService> = {
  storeInteraction: adapter<StoreInteractionOptions & Content & { sender?: string }>(
    [...STORED, "sender"],
    async (client, { sender = "", content = "", ...options }) =>
      storedOf(await client.storeInteraction(sender, content, options)),
  ),
  storeResponse: adapter<StoreResponseOptions & Content>(
    [...STORED, "sender", "inResponseTo", "originalMessage", "allowMissing"],
    async (client, { content = "", ...options }) => storedOf(await client.storeResponse(content, options)),
  ),
  storeReflection: adapter<StoreReflectionOptions & Content>(
    [...STORED, "sender", "interactionIds"],
    async (client, { content = "", ...options }) => storedOf(await client.storeReflection(content, options)),
  ),
  retrieveRelevantContext: adapter<RelevantContextOptions & Query>(
    [
      ...FOUND_AMONG,
      "query",
      "interactionLimit",
      "reflectionLimit",
      "excludeIds",
      "minScore",
      "mode",
      "maxTokens",
      "explain",
    ],
    async (client, { query = "", ...options }) => {
      const context = await client.retrieveRelevantContext(query, options);
      return { ...resultsOf(context), tokenCount: context.tokenCount };
    },
  ),
  retrieveLastInteractions: adapter<LastInteractionsOptions>(
    [...FOUND_AMONG, "limit", "pageSize"],
    async (client, options) => {
      const interactions = await client.retrieveLastInteractions(options);
      return { interactions, revision: interactions.revision };
    },
  ),
};

type Split = { split?: SplitOptions };

export const KNOWLEDGE: Adapters<typeof KnowledgeService> = {
  handleMessage: adapter<HandleMessageOptions & Split & { sessionId?: string; text?: string }>(
    [
      "sessionId",
      "text",
      "messageId",
      "agentName",
      "commands",
      "maxRecentMessages",
      "labels",
      "metadata",
      "split",
      "requestId",
    ],
    async (client, { sessionId = "", text = "", split, ...options }) => {
      const handled = await client.handleMessage(sessionId, text, { ...options, ...split });
      return { ...handled, fragments: handled.document?.fragments };
    },
  ),
  addDocument: adapter<AddDocumentOptions & Split & { document?: AddDocumentOptions & { text?: string } }>(
    ["document", "split", "replace", "expectedVersion", "requestId"],
    async (client, { document, split, ...options }) => {
      const { text = "", ...fields } = required(document, "AddDocumentRequest.document");
      const added = await client.addDocument(text, { ...options, ...fields, ...split });
      return { document: added, degraded: added.degraded, revision: added.namespaceRevision };
    },
  ),
  getDocument: adapter<GetDocumentOptions & Id>(
    ["id", "includeFragments", "pageSize"],
    async (client, { id = "", ...options }) => {
      const document = await client.getDocument(id, options);
      return { document, fragments: document.fragments, revision: document.namespaceRevision };
    },
  ),
  listDocuments: adapter<ListDocumentsOptions>(
    ["pageSize", "sessionId", "labels", "startTime", "endTime", "newestFirst", "minTrust", "sources"],
    async (client, options) => ({ documents: await all(client.listDocuments(options)) }),
  ),
  deleteDocument: adapter<DeleteDocumentOptions & Id>(
    ["id", "expectedVersion", "keepDerived", "requestId"],
    async (client, { id = "", ...options }) => {
      const { fragmentCount, ...rest } = await client.deleteDocument(id, options);
      return { removedFragmentCount: fragmentCount, ...rest };
    },
  ),
  searchFragments: adapter<SearchFragmentsOptions & Query>(
    [
      "query",
      "limit",
      "documentIds",
      "sessionId",
      "labels",
      "startTime",
      "endTime",
      "minScore",
      "mode",
      "maxTokens",
      "explain",
      "pageSize",
      "minTrust",
      "sources",
    ],
    async (client, { query = "", ...options }) => resultsOf(await client.searchFragments(query, options)),
  ),
};

export const OVERSEER: Adapters<typeof OverseerService> = {
  checkRelevance: adapter<CheckRelevanceOptions & { goal?: string }>(
    ["goal", "limit", "maxTokens", "pattern", "maxCandidates", "omitValues", "decideBy", "explain"],
    (client, { goal = "", ...options }) => client.checkRelevance(goal, options),
  ),
  evaluateForStorage: adapter<EvaluateForStorageOptions & { toolName?: string; result?: JsonValue }>(
    [
      "toolName",
      "result",
      "goal",
      "save",
      "arguments",
      "isError",
      "key",
      "overwrite",
      "ttlMs",
      "decideBy",
      "requestId",
    ],
    (client, { toolName = "", result, ...options }) =>
      client.evaluateForStorage(toolName, required(result, "EvaluateForStorageRequest.result"), options),
  ),
};
