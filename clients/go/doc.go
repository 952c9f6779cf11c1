// Package memory is the Go client of memory-service, which keeps what agents are told, do and learn.
//
// [Dial] makes a [Client] of a server, bound to one namespace, usually one user or one agent:
//
//	client, err := memory.Dial("127.0.0.1:50051", memory.WithNamespace("ada"))
//
// A [Client] is a [Memory], the interface that agents need: Add, Retrieve and Reset. So is what
// [NewInMemoryMemory] makes, for tests and for programs that need no server. Beside these a Client
// has methods for everything that the server does:
//
//   - items: [Client.AddItem], [Client.BatchAdd], [Client.RetrieveResults], [Client.Get],
//     [Client.ListItems], [Client.Update], [Client.Delete], [Client.ResetNamespace]
//   - many items at once: [Client.ImportItems], [Client.Export]; what happens: [Client.Watch]
//   - an agent's named values: [Client.SaveState], [Client.LoadState], [Client.ListStateKeys],
//     [Client.SearchState], [Client.DeleteState], [Client.ClearState]
//   - facts about a user: [Client.SaveMemory], [Client.SearchMemories],
//     [Client.GetPreloadedMemories], [Client.ExtractMemories] and others
//   - conversations: [Client.StoreInteraction], [Client.StoreResponse],
//     [Client.RetrieveRelevantContext] and others; documents: [Client.AddDocument],
//     [Client.SearchFragments] and others; decisions: [Client.CheckRelevance],
//     [Client.EvaluateForStorage]
//   - the server itself: [Client.Info], [Client.ListNamespaces], [Client.NamespaceStats],
//     [Client.DeleteNamespace], [Client.Reembed], [Client.UndoWrites],
//     [Client.ListQuarantined], [Client.ReviewQuarantined], [Client.Flush], [Client.Backup], [Client.Health]
//
// # Errors
//
// Every error is an [*Error], and one of the Err values of this package for [errors.Is]. While the
// server is unavailable a call is tried up to five times; writes carry a request id, so that one that
// is tried twice is applied once.
//
// # Values
//
// Data, metadata, states, arguments and results of tools are JSON values. Anything that
// encoding/json can write is taken; what returns has the types of encoding/json: numbers are
// float64, objects map[string]any, lists []any. The server keeps numbers as doubles, so an integer
// beyond 2^53 is [ErrInvalidArgument]: send it as a string. Times are kept to the microsecond and
// return in UTC.
package memory
