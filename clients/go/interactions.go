package memory

import "time"

// InteractionKind is the kind of an interaction. "unknown" is a value that only a newer server knows.
type InteractionKind string

// The kinds of interactions.
const (
	// InteractionMessage is a message to the agent.
	InteractionMessage InteractionKind = "message"
	// InteractionResponse is a response of the agent.
	InteractionResponse InteractionKind = "response"
	// InteractionReflection is a thought of the agent about its own actions.
	InteractionReflection InteractionKind = "reflection"
)

// OriginalMessage identifies the message that a response answers by its contents.
type OriginalMessage struct {
	// Content of the message, exactly. At most 64 KiB.
	Content string
	// Sender of the message. In requests, empty: any.
	Sender string
	// CreateTime of the message. In requests, zero: any.
	CreateTime time.Time
	// Provenance records the message's writer and trust. Set by the server; never sent.
	Provenance *Provenance
}

// Interaction is a message, a response or a reflection, as stored. It is an item of the namespace:
// [Client.Get] and [Client.Delete] take its id. Times are in UTC.
type Interaction struct {
	// ID of the item, unique in its namespace.
	ID string
	// Kind of the interaction.
	Kind InteractionKind
	// Content is the text.
	Content string
	// Sender of a message; the agent's name for a response or a reflection.
	Sender string
	// SessionID is the conversation that it belongs to. Empty: none.
	SessionID string
	// InResponseTo is the id of the message that a response answers. Empty: it is not a response, or not
	// linked to a message.
	InResponseTo string
	// OriginalMessage is that message as it is stored now. Nil: not linked, deleted, or omitted in an
	// InteractionPair.
	OriginalMessage *OriginalMessage
	// InteractionIDs of the interactions that a reflection is about.
	InteractionIDs []string
	// CreateTime is when it was said.
	CreateTime time.Time
	// UpdateTime is when it was last written.
	UpdateTime time.Time
	// ExpireTime is when it expires. Zero: never.
	ExpireTime time.Time
	// Labels for exact matching.
	Labels map[string]string
	// Metadata are JSON values stored with it.
	Metadata map[string]any
	// Revision of the namespace at which it was last written.
	Revision int64
	// Provenance records its writer, its sources and its trust. Nil: written by a caller without a name,
	// and therefore trusted.
	Provenance *Provenance
	// Degraded lists what the server could not do when this client wrote it, such as embedding its
	// text. Empty: it did everything.
	Degraded []Degradation
}

// StoreInteractionOptions are the optional arguments of [Client.StoreInteraction].
type StoreInteractionOptions struct {
	// SessionID is the conversation that it belongs to, at most 256 bytes. Empty: none.
	SessionID string
	// CreateTime is when it was said. Zero: now.
	CreateTime time.Time
	// ID of the new item, 1 to 128 bytes. Empty: the server makes one.
	ID string
	// Labels for exact matching, as in {"topic": "travel"}.
	Labels map[string]string
	// Metadata are JSON values to store with it.
	Metadata map[string]any
	// TTL is the time until it expires. 0: it never does.
	TTL time.Duration
}

// StoreResponseOptions are the optional arguments of [Client.StoreResponse].
type StoreResponseOptions struct {
	// InResponseTo is the id of the message that it answers. Empty: see OriginalMessage.
	InResponseTo string
	// OriginalMessage that it answers, for callers without its id: the newest message with these
	// contents is linked. If both are missing, the response is not linked.
	OriginalMessage *OriginalMessage
	// AllowMissing stores the response even if its message does not exist yet. Reads link it to the
	// message with that id, or to the first with these contents that is stored later.
	AllowMissing bool
	// Sender is the agent that answers. Empty: "system".
	Sender string
	// SessionID is the conversation that it belongs to. Empty: that of the message.
	SessionID string
	// CreateTime is when it was said. Zero: now.
	CreateTime time.Time
	// ID of the new item, 1 to 128 bytes. Empty: the server makes one.
	ID string
	// Labels for exact matching, as in {"topic": "travel"}.
	Labels map[string]string
	// Metadata are JSON values to store with it.
	Metadata map[string]any
	// TTL is the time until it expires. 0: it never does.
	TTL time.Duration
}

// StoreReflectionOptions are the optional arguments of [Client.StoreReflection].
type StoreReflectionOptions struct {
	// InteractionIDs of the interactions that it is about, at most 100. They need not exist.
	InteractionIDs []string
	// Sender is the agent that reflects. Empty: "system".
	Sender string
	// SessionID is the conversation that it belongs to. Empty: none.
	SessionID string
	// CreateTime is when it was thought. Zero: now.
	CreateTime time.Time
	// ID of the new item, 1 to 128 bytes. Empty: the server makes one.
	ID string
	// Labels for exact matching, as in {"topic": "travel"}.
	Labels map[string]string
	// Metadata are JSON values to store with it.
	Metadata map[string]any
	// TTL is the time until it expires. 0: it never does.
	TTL time.Duration
}

// RelevantContextOptions are the optional arguments of [Client.RetrieveRelevantContext].
type RelevantContextOptions struct {
	// InteractionLimit is the maximum number of messages and responses, up to 100. Nil: 5.
	InteractionLimit *int
	// ReflectionLimit is the maximum number of reflections, up to 100. Nil: 2.
	ReflectionLimit *int
	// SessionID of messages and responses; reflections have it or none. Empty: any.
	SessionID string
	// Sender of messages, returned with the responses to them. Empty: any.
	Sender string
	// ExcludeIDs are omitted, such as the new message's if it is already stored. At most 100.
	ExcludeIDs []string
	// Labels that all results must have. Empty: any.
	Labels map[string]string
	// StartTime: interactions whose CreateTime is at or after it. Zero: no limit.
	StartTime time.Time
	// EndTime: interactions whose CreateTime is before it. Zero: no limit.
	EndTime time.Time
	// MinScore is the lowest score of a result. Nil: any.
	MinScore *float64
	// Mode of the search. Empty: words and vectors together.
	Mode RetrieveMode
	// MaxTokens is the maximum number of tokens of all texts together, estimated. The worst matches are
	// omitted. Nil: no limit except that of a response, about 3 MiB.
	MaxTokens *int
	// Explain adds an explanation of its score to each result.
	Explain bool
	// MinTrust is the lowest trust of messages, responses and reflections, 0 to 1. Nil: any.
	MinTrust *float64
	// Sources: only messages, responses and reflections from one of these. Empty: any.
	Sources []SourceKind
}

// LastInteractionsOptions are the optional arguments of [Client.RetrieveLastInteractions].
type LastInteractionsOptions struct {
	// Limit is the maximum number of messages. Nil: 5. -1: no limit.
	Limit *int
	// SessionID of the messages. Empty: any.
	SessionID string
	// Sender of the messages. Empty: any.
	Sender string
	// Labels that the messages must have, all of them. Empty: any.
	Labels map[string]string
	// StartTime: messages whose CreateTime is at or after it. Zero: no limit.
	StartTime time.Time
	// EndTime: messages whose CreateTime is before it. Zero: no limit.
	EndTime time.Time
	// PageSize is how many messages are fetched at a time. 0: the server decides.
	PageSize int
	// MinTrust is the lowest trust of messages and of the responses returned and counted, 0 to 1. Nil: any.
	MinTrust *float64
	// Sources: only messages, and only responses returned and counted, from one of these. Empty: any.
	Sources []SourceKind
}

// ContextResult is one message, response or reflection found.
type ContextResult struct {
	// Interaction that was found. Its Kind marks reflections.
	Interaction *Interaction
	// Text for a prompt: the content, after "SYSTEM REFLECTION: " for a reflection.
	Text string
	// Score of the interaction, higher is better. Reflections are scored by a separate search: do not
	// compare their scores with the others.
	Score float64
	// Explanation holds the contributions that add up to the score. Empty unless requested.
	Explanation []Contribution
}

// RelevantContext holds the interactions that match a text.
type RelevantContext struct {
	// Results: first messages and responses, best first, then reflections, best first.
	Results []ContextResult
	// TokenCount of the results' texts, estimated.
	TokenCount int
	// Degraded lists what the server could not do for this answer. Empty: it did everything.
	Degraded []Degradation
	// Revision of the namespace that the answer reflects.
	Revision int64
}

// InteractionPair is a message with the responses to it.
type InteractionPair struct {
	// Message that was sent.
	Message *Interaction
	// Responses to it in the order in which they were written, at most the first 20.
	Responses []*Interaction
	// ResponseCount is the number of all its responses.
	ResponseCount int
}

// LastInteractions are the newest messages with their responses.
type LastInteractions struct {
	// Interactions, newest message first.
	Interactions []InteractionPair
	// Revision of the namespace that the answer reflects.
	Revision int64
}
