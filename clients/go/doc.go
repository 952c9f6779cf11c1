// Package memory is the Go client of memory-service, a memory server for agents: it stores what they
// hear, do and learn.
//
// [Dial] returns a [Client] bound to one namespace of a server, usually one user or one agent:
//
//	client, err := memory.Dial("127.0.0.1:50051", memory.WithNamespace("ada"))
//
// A [Client] implements [Memory], the interface that agents need: Add, Retrieve and Reset.
// [InMemoryMemory] also implements it, for tests and programs without a server. A Client has methods for
// everything else that the server does:
//
//   - items: [Client.AddItem], [Client.BatchAdd], [Client.RetrieveResults], [Client.Get],
//     [Client.ListItems], [Client.ListLabelValues], [Client.Update], [Client.Delete],
//     [Client.DeleteWhere], [Client.ResetNamespace]
//   - several operations on items and states at once: [Client.BatchWrite]
//   - versions of items and states: [Client.ListItemVersions], [Client.GetAt], [Client.RedactVersion],
//     [Client.ListStateVersions], [Client.LoadStateAt], [Client.RedactStateVersion]
//   - many items at once: [Client.ImportItems], [Client.Export]; what happens: [Client.Watch]
//   - an agent's named values: [Client.SaveState], [Client.LoadState], [Client.ListStateKeys],
//     [Client.SearchState], [Client.RenameState], [Client.DeleteState], [Client.ClearState]
//   - facts about a user: [Client.SaveMemory], [Client.SearchMemories],
//     [Client.GetPreloadedMemories], [Client.ExtractMemories] and others
//   - conversations: [Client.StoreInteraction], [Client.StoreResponse],
//     [Client.RetrieveRelevantContext] and others; documents: [Client.AddDocument],
//     [Client.SearchFragments] and others; decisions: [Client.CheckRelevance],
//     [Client.EvaluateForStorage]
//   - sessions: [Client.ListSessions], [Client.GetSession], [Client.UpdateSession],
//     [Client.DeleteSession], [Client.ForkSession]
//   - files for a model's notes: [Client.ReadFile], [Client.WriteFile], [Client.EditFile],
//     [Client.RenameFile], [Client.DeleteFile], [Client.ListFiles], [Client.SearchFiles],
//     [Client.ListFileVersions], [Client.RedactFileVersion]
//   - the server itself: [Client.Info], [Client.ListNamespaces], [Client.NamespaceStats], [Client.UpdateNamespace],
//     [Client.DeleteNamespace], [Client.Reembed], [Client.UndoWrites],
//     [Client.ListQuarantined], [Client.ReviewQuarantined], [Client.Flush], [Client.Backup], [Client.Health]
//
// # Errors
//
// Every error is an [*Error], and matches one of the Err values of this package with [errors.Is]. While the
// server is unavailable a call is tried up to five times; writes carry a request id, so that a retried
// write is applied once.
//
// # Values
//
// Data, metadata, states, arguments and results of tools are JSON values. Anything that encoding/json
// can write is accepted; returned values have the types of encoding/json: numbers are float64, objects
// map[string]any, lists []any. The server stores numbers as doubles, so an integer beyond 2^53 is refused
// with [ErrInvalidArgument]: send it as a string. Times have microseconds and are returned in UTC.
package memory
