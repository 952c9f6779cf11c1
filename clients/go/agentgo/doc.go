// Package agentgo makes agents of agent-go (github.com/oopslink/agent-go) durable: [NewMemory] replaces
// its NewSimpleMemory, [NewState] its NewInMemoryState, and a memory server keeps what the agent
// remembers. Nothing else in the agent changes.
//
// # What comes back
//
// A message, and what a tool returned, come back as they were added: every kind of part with every
// field, nil apart from empty, names, models and times. Items keep their ids. A message comes back in
// agent-go's own ChatMessageMemoryItem; a tool's result, which agent-go's own type can be made of only
// with another id and time, in a type of this package whose methods return the same. Take items by
// GetContent and AsMessage rather than by their type.
//
// As with agent-go's own FileStore, data pass through JSON, and it is the item as it was when it was
// added that comes back, not a pointer to the same:
//
//   - JSON has one kind of number: integers come back as float64. Those that a float64 would alter,
//     beyond 2^53, come back as int64, uint64 or, beyond both, json.Number, with all their digits.
//   - Structs, typed maps and lists come back as map[string]any and []any, a []byte inside of data as
//     base64, a nil pointer as nil. What encoding/json cannot write is refused.
//   - The content of other items, such as GenericMemoryItem or your own implementations, comes back as
//     its JSON value: a string as a string, a struct as map[string]any. (The FileStore returns the JSON
//     text.) If its AsMessage returns a message, that comes back as well.
//   - In data and names, what is not UTF-8 becomes U+FFFD. In the text of a message it does not.
//   - A time comes back to the nanosecond and with its offset, but without the name of its place and
//     without the clock of the process that [time.Now] adds: compare times by their method Equal.
//
// # What differs
//
// With a limit below the number of items, agent-go's own memory returns the oldest; this one returns the
// newest, the oldest of them first, because an agent needs these to go on. Without a limit, or with one
// that is negative, both return all. There is no other difference in what is returned.
//
// A server has limits, beyond which Add returns [memory.ErrLimitExceeded] or
// [memory.ErrInvalidArgument]: an item has at most 2 MiB, a part 1 MiB and a message 256 parts. And a
// server can be unavailable: Add and Retrieve retry for about two seconds, and then return
// [memory.ErrUnavailable].
//
// # How it is kept
//
// Memory and state lie in the namespace of the client, where other clients find them: a message as a
// message, a tool's result as such, another content that is text as text, and as data otherwise. What
// the server's form has no place for, such as a role that is not one of four or the nanoseconds of a
// time, is kept in the item's metadata under "agentgo". A part that the server does not accept as it is,
// such as a text of more than 64 KiB, data of more than 256 KiB or nested deeper than 20 levels, is kept
// as a file, which other clients see as one, and which is not searched.
//
// Retrieve also returns items that other clients have added to the namespace. Text and data are then no
// messages; a tool's result that is no object becomes {"result": ...}, and one that is an error
// {"error": ...}.
//
// Reset removes the items of the conversation and nothing else: state, facts about users and documents
// of the namespace stay. It deletes them one by one, some thousand in a second.
package agentgo
