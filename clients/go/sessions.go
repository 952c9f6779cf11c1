package memory

import "time"

// Session is a conversation within a namespace. It exists as soon as an item names it.
type Session struct {
	ID string
	// Title. Empty: none.
	Title string
	// Labels of the session itself.
	Labels map[string]string
	// Metadata that is stored with it. Nil: none.
	Metadata map[string]any
	// ItemCount is how many items it has that have not expired.
	ItemCount int64
	// FirstTime is the earliest CreateTime of an item. Zero: there are no items.
	FirstTime time.Time
	// LastTime is the latest CreateTime of an item. Zero: there are no items.
	LastTime time.Time
	// Version changes with each update of title, labels or metadata. 0: none of them was ever set.
	Version int64
	// UpdateTime is when one of them was last set. Zero: never.
	UpdateTime time.Time
	// ForkedFrom is what it was copied from. Nil: it is no copy.
	ForkedFrom *SessionOrigin
	// Participants are the names of those who spoke in its newest 1000 items, at most 100; only from
	// [Client.GetSession], else empty.
	Participants []string
	// NamespaceRevision is that of the namespace that the answer reflects; 0 in lists.
	NamespaceRevision int64
	// Degraded: what the server could not do for this answer. Empty: nothing.
	Degraded []Degradation
}

// SessionOrigin is what a session was copied from. It may have been changed or deleted since.
type SessionOrigin struct {
	SessionID string
	// UntilItemID is the last item that was copied. Empty: none was.
	UntilItemID string
	// Revision of the namespace at which the items were read.
	Revision int64
}

// ListSessionsOptions select the sessions that [Client.ListSessions] yields.
type ListSessionsOptions struct {
	// Prefix: only sessions whose id begins with it. Empty: any.
	Prefix string
	// Labels that the sessions must have, all of them. Empty: any.
	Labels map[string]string
	// PageSize is the number to fetch at a time. 0: 100.
	PageSize int
}

// SessionChanges are the new values of a session.
type SessionChanges struct {
	// Title. Empty: unchanged, unless [WithFields] names "title".
	Title string
	// Labels replace all labels. Empty: unchanged, unless [WithFields] names "labels".
	Labels map[string]string
	// Metadata replace all metadata. Nil: unchanged, unless [WithFields] names "metadata".
	Metadata map[string]any
	// AllowMissing creates the session if no item names it.
	AllowMissing bool
}

// ForkSessionOptions select what [Client.ForkSession] copies, and to where.
type ForkSessionOptions struct {
	// NewSessionID must not exist. Empty: the server makes an id.
	NewSessionID string
	// UntilItemID is the last item to copy. Empty: the last one.
	UntilItemID string
	// UntilRevision: copy only items that were added at or before this revision. Nil: all.
	UntilRevision *int64
}
