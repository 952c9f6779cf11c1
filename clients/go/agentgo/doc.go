// Package agentgo makes agents of agent-go (github.com/oopslink/agent-go) durable: [NewMemory] replaces
// its NewSimpleMemory, [NewState] its NewInMemoryState, and a memory server stores what the agent
// remembers. Nothing else in the agent changes.
//
// # Results
//
// Messages and tool results are returned as they were added: every kind of part with every field, names,
// models and times, with nil distinct from empty. Items keep their ids. They are returned in agent-go's own
// types: a message in ChatMessageMemoryItem, a tool result in ToolCallResultMemoryItem, other content in
// GenericMemoryItem. Only an item whose AsMessage returns a message besides other content has a type of this
// package: read such items by GetContent and AsMessage.
//
// As with agent-go's own FileStore, data pass through JSON, and a copy of the item as added is returned,
// not the same pointer:
//
//   - JSON has one kind of number: integers return as float64. Those beyond 2^53, which a float64 would
//     alter, return as int64, uint64 or, beyond both, json.Number, with all their digits.
//   - Structs, typed maps and lists return as map[string]any and []any, a []byte inside data as base64, a
//     nil pointer as nil. Values that encoding/json cannot write are refused.
//   - The content of other items, such as GenericMemoryItem or your own implementations, returns as its
//     JSON value: a string as a string, a struct as map[string]any. (The FileStore returns the JSON
//     text.) If its AsMessage returns a message, that is returned as well.
//   - In data and names, invalid UTF-8 becomes U+FFFD; in the text of a message it is preserved.
//   - A time returns to the nanosecond and with its offset, but without the name of its location and
//     without the monotonic clock reading of [time.Now]: compare times by their method Equal.
//
// # What differs
//
// With a limit below the number of items, agent-go's own memory returns the oldest; this one returns the
// newest, the oldest of them first, because an agent needs these to continue. Without a limit, or with a
// negative one, both return all. There is no other difference in the results.
//
// A server has limits, beyond which Add returns [memory.ErrLimitExceeded] or [memory.ErrInvalidArgument]:
// an item has at most 2 MiB, a part 1 MiB and a message 256 parts. A server can also be unavailable: Add
// and Retrieve retry for about two seconds, and then return [memory.ErrUnavailable].
//
// # How it is stored
//
// Memory and state are in the namespace of the client, where other clients find them: messages as
// messages, tool results as tool results, other content as text if it is text, and otherwise as data.
// Details that the server has no field for, such as a role that is not one of four or the nanoseconds of
// a time, are in the item's metadata under "agentgo". A part that the server does not accept, such as a
// text of more than 64 KiB, data of more than 256 KiB or nested deeper than 20 levels, is stored as a
// file, which other clients see as a file, and which is not searched.
//
// Retrieve also returns items that other clients have added to the namespace. Text and data are then
// not messages; a tool's result that is not an object becomes {"result": ...}, or {"error": ...} if it is
// an error.
//
// Reset removes the items of the conversation and nothing else: state, facts about users and documents
// of the namespace stay. It deletes them one by one, about a thousand in a second.
package agentgo
