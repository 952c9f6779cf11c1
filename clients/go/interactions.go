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
	// InteractionReflection is a thought of the agent about its own doing.
	InteractionReflection InteractionKind = "reflection"
)

// OriginalMessage identifies the message that a response answers by its contents.
type OriginalMessage struct {
	// Content of the message, to the letter. At most 64 KiB.
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
	// ID names the item inside its namespace.
	ID string
	// Kind of the interaction.
	Kind InteractionKind
	// Content is the text.
	Content string
	// Sender of a message; the agent's name for a response or a reflection.
	Sender string
	// SessionID is the conversation that it belongs to. Empty: none.
	SessionID string
	// InResponseTo is the id of the message that a response answers. Empty: it is no response, or is
	// linked to no message.
	InResponseTo string
	// OriginalMessage is that message as it is stored now. Nil: not linked, deleted, or left out
	// inside an InteractionPair.
	OriginalMessage *OriginalMessage
	// InteractionIDs of what a reflection is about.
	InteractionIDs []string
	// CreateTime is when it was said.
	CreateTime time.Time
	// UpdateTime is when it was last written.
	UpdateTime time.Time
	// ExpireTime is when it ceases to exist. Zero: never.
	ExpireTime time.Time
	// Labels for exact matching.
	Labels map[string]string
	// Metadata are JSON values that are kept with it.
	Metadata map[string]any
	// Revision of the namespace at which it was last written.
	Revision int64
	// Provenance records its writer, its sources and its trust. Nil: written by a caller without a name,
	// and therefore trusted.
	Provenance *Provenance
	// Degraded names what the server could not do when this client wrote it, such as embedding its
	// text. Empty: nothing.
	Degraded []Degradation
}

// StoreInteractionOptions are the optional arguments of [Client.StoreInteraction].
type StoreInteractionOptions struct {
	// SessionID is the conversation that it belongs to, at most 256 bytes. Empty: none.
	SessionID string
	// CreateTime is when it was said. Zero: now. It filters, but never orders: the newest is the last
	// written.
	CreateTime time.Time
	// ID of the new item, 1 to 128 bytes. Empty: the server makes one.
	ID string
	// Labels for exact matching, as in {"topic": "travel"}.
	Labels map[string]string
	// Metadata are JSON values to keep with it.
	Metadata map[string]any
	// TTL is how long it lives from now. 0: until it is deleted.
	TTL time.Duration
}

// StoreResponseOptions are the optional arguments of [Client.StoreResponse].
type StoreResponseOptions struct {
	// InResponseTo is the id of the message that it answers. Empty: see OriginalMessage.
	InResponseTo string
	// OriginalMessage that it answers, for a writer who does not have the id: the newest message that
	// says this is linked. Nil: without an id either, the response is linked to no message.
	OriginalMessage *OriginalMessage
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
	// Metadata are JSON values to keep with it.
	Metadata map[string]any
	// TTL is how long it lives from now. 0: until it is deleted.
	TTL time.Duration
}

// StoreReflectionOptions are the optional arguments of [Client.StoreReflection].
type StoreReflectionOptions struct {
	// InteractionIDs of what it is about, at most 100. They need not exist.
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
	// Metadata are JSON values to keep with it.
	Metadata map[string]any
	// TTL is how long it lives from now. 0: until it is deleted.
	TTL time.Duration
}

// RelevantContextOptions are the optional arguments of [Client.RetrieveRelevantContext].
type RelevantContextOptions struct {
	// InteractionLimit is the most messages and responses wanted, at most 100. Nil: 5.
	InteractionLimit *int
	// ReflectionLimit is the most reflections wanted, at most 100. Nil: 2.
	ReflectionLimit *int
	// SessionID that messages and responses have; reflections have it or none. Empty: any.
	SessionID string
	// Sender that messages have, with the responses to them. Empty: any.
	Sender string
	// ExcludeIDs are left out, such as the new message's own when it is stored already. At most 100.
	ExcludeIDs []string
	// Labels that all of them have. Empty: any.
	Labels map[string]string
	// StartTime: what has a CreateTime at or after it. Zero: no bound.
	StartTime time.Time
	// EndTime: what has a CreateTime before it. Zero: no bound.
	EndTime time.Time
	// MinScore is the lowest score of a result. Nil: any.
	MinScore *float64
	// Mode of the search. Empty: words and vectors together.
	Mode RetrieveMode
	// MaxTokens that the texts may take together, estimated. The least fitting are left out. Nil: no
	// bound but that of a response, about 3 MiB.
	MaxTokens *int
	// Explain adds to each result the breakdown of its score.
	Explain bool
	// MinTrust that the messages, responses and reflections have, 0 to 1. Nil: any.
	MinTrust *float64
	// Sources that the messages, responses and reflections have one of. Empty: any.
	Sources []SourceKind
}

// LastInteractionsOptions are the optional arguments of [Client.RetrieveLastInteractions].
type LastInteractionsOptions struct {
	// Limit is the most messages wanted. Nil: 5. -1: no limit.
	Limit *int
	// SessionID that the messages have. Empty: any.
	SessionID string
	// Sender that the messages have. Empty: any.
	Sender string
	// Labels that the messages have, all of them. Empty: any.
	Labels map[string]string
	// StartTime: messages whose CreateTime is at or after it. Zero: no bound.
	StartTime time.Time
	// EndTime: messages whose CreateTime is before it. Zero: no bound.
	EndTime time.Time
	// PageSize is how many messages are fetched at a time. 0: the server decides.
	PageSize int
	// MinTrust that the messages have, and the responses that are shown and counted, 0 to 1. Nil: any.
	MinTrust *float64
	// Sources that the messages have one of, and the responses that are shown and counted. Empty: any.
	Sources []SourceKind
}

// ContextResult is one message, response or reflection found.
type ContextResult struct {
	// Interaction that was found. Its Kind marks reflections.
	Interaction *Interaction
	// Text for a prompt: the content, and before that of a reflection "SYSTEM REFLECTION: ".
	Text string
	// Score of the interaction, higher is better. Reflections are scored by a separate search: do not
	// compare their scores with the others.
	Score float64
	// Explanation holds the contributions that add up to the score. Empty unless requested.
	Explanation []Contribution
}

// RelevantContext is what fits a text.
type RelevantContext struct {
	// Results: first messages and responses, the best first, then reflections, the best first.
	Results []ContextResult
	// TokenCount of the results' texts, estimated.
	TokenCount int
	// Degraded names what the server could not do for this answer. Empty: nothing.
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
	// ResponseCount is how many responses it has in all.
	ResponseCount int
}

// LastInteractions are the newest messages with their responses.
type LastInteractions struct {
	// Interactions, the newest message first.
	Interactions []InteractionPair
	// Revision of the namespace that the answer reflects.
	Revision int64
}
