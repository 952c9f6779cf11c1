// Adapters for FileService.

import type {
  DeleteFileOptions,
  FileEdit,
  ListFilesOptions,
  ListVersionsOptions,
  ReadFileOptions,
  RenameFileOptions,
  SearchFilesOptions,
  WriteFileOptions,
} from "../src/index.js";
import type { FileService } from "../src/gen/memory_service/v1/file_pb.js";
import type { Adapters } from "./peer-adapters.js";
import { adapter, all, required } from "./peer-adapters.js";

type Path = { path?: string };
type Edit = { edit?: FileEdit };

export const FILES: Adapters<typeof FileService> = {
  readFile: adapter<ReadFileOptions & Path>(
    ["path", "startLine", "endLine", "version", "maxCharacters"],
    async (client, { path = "", ...options }) => client.readFile(path, options),
  ),
  writeFile: adapter<WriteFileOptions & Path & { content?: string }>(
    ["path", "content", "expectedVersion", "expectedSha256", "requestId"],
    async (client, { path = "", content = "", ...options }) => client.writeFile(path, content, options),
  ),
  editFile: adapter<WriteFileOptions & Path & Edit>(
    ["path", "edit", "expectedVersion", "expectedSha256", "requestId"],
    async (client, { path = "", edit, ...options }) =>
      client.editFile(path, required(edit, "EditFileRequest.edit"), options),
  ),
  renameFile: adapter<RenameFileOptions & Path & { newPath?: string }>(
    ["path", "newPath", "expectedVersion", "requestId"],
    async (client, { path = "", newPath = "", ...options }) => client.renameFile(path, newPath, options),
  ),
  deleteFile: adapter<DeleteFileOptions & Path>(
    ["path", "recursive", "expectedVersion", "requestId"],
    async (client, { path = "", ...options }) => client.deleteFile(path, options),
  ),
  listFiles: adapter<ListFilesOptions>(
    ["path", "depth", "pageSize"],
    async (client, options) => ({ entries: await all(client.listFiles(options)) }),
  ),
  listFileVersions: adapter<ListVersionsOptions & Path>(
    ["path", "pageSize"],
    async (client, { path = "", ...options }) => ({ versions: await all(client.listFileVersions(path, options)) }),
  ),
  redactFileVersion: adapter<Path & { version?: number }>(["path", "version"], async (client, request) => ({
    revision: await client.redactFileVersion(request.path ?? "", request.version ?? 0),
  })),
  searchFiles: adapter<SearchFilesOptions & { query?: string }>(
    ["query", "path", "limit", "maxCharacters"],
    async (client, { query = "", ...options }) => {
      const results = await client.searchFiles(query, options);
      return { results, degraded: results.degraded, revision: results.revision };
    },
  ),
};
