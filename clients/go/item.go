package memory

import (
	"reflect"
	"time"

	"github.com/memory-service/memory-service/clients/go/llms"
)

// ItemKind is the service that an item belongs to, and its kind there.
type ItemKind string

// The kinds of items.
const (
	KindPlain        ItemKind = "plain"         // Added by Add. An empty kind means the same.
	KindMessage      ItemKind = "message"       // A message of [Client.StoreInteraction].
	KindResponse     ItemKind = "response"      // A response of [Client.StoreResponse].
	KindReflection   ItemKind = "reflection"    // A reflection of [Client.StoreReflection].
	KindUserMemory   ItemKind = "user_memory"   // A fact of [Client.SaveMemory].
	KindDocument     ItemKind = "document"      // A document of [Client.AddDocument].
	KindFragment     ItemKind = "fragment"      // A fragment of a document.
	KindSession      ItemKind = "session"       // What [Client.UpdateSession] stores.
	KindFile         ItemKind = "file"          // A file of [Client.WriteFile].
	KindFileFragment ItemKind = "file_fragment" // A fragment of a file.
)

// SourceKind is where the content of an item comes from. Empty: unknown; in an item to be added: derived
// from the content.
type SourceKind string

// The kinds of sources.
const (
	SourceUser     SourceKind = "user"     // A human said it. Implied by the role of a user.
	SourceAgent    SourceKind = "agent"    // An agent said it. Implied by the role of an assistant.
	SourceTool     SourceKind = "tool"     // A tool returned it. Implied by the result of a tool call.
	SourceWeb      SourceKind = "web"      // It was read on the web.
	SourceDocument SourceKind = "document" // It is from a document.
	SourceDerived  SourceKind = "derived"  // It was derived from other items.
	SourceImport   SourceKind = "import"   // It was imported by a caller who is not an administrator of the server.
)

// Provenance records the writer, the sources and the trust of a version of an item. A writer may set
// Source, SourceURI, ParentIDs, Model and Trust, but only to lower it. The server sets the rest, and keeps
// it in imports by its administrators.
type Provenance struct {
	// Writer is the name of the credential that it was written with. Empty: none.
	Writer string
	// CredentialID of that credential. Empty: none.
	CredentialID string
	// Source of the content.
	Source SourceKind
	// SourceURI is where the content was found, such as the URL of a page. Empty: unknown.
	SourceURI string
	// ParentIDs are the items of the same namespace that it was derived from, at most 100.
	ParentIDs []MemoryItemId
	// Model that derived it from its parents, such as "openai:gpt-5". Empty: none, or unknown.
	Model string
	// Trust in the content, 0 to 1. Nil when added: not lowered. The server always returns it.
	Trust *float64
	// WriteTime of the version, by the server's clock. Set by the server.
	WriteTime time.Time
}

// Item is one thing remembered, with all fields that the server stores. An item to be added needs only
// Content. It has at most 2 MiB in all.
type Item struct {
	// ID of the item, unique in its namespace, 1 to 128 bytes. Empty when added: the server makes one.
	ID MemoryItemId
	// SessionID is the conversation that the item belongs to, at most 256 bytes. Empty: none.
	SessionID string
	// Content is what is remembered: a *[llms.Message], a *[llms.ToolCallResult], a string that is not
	// empty, or data, a map[string]any of JSON values. Data are returned with the types of encoding/json:
	// numbers as float64. Nil only if a newer server sends a kind that this client does not know.
	Content any
	// CreateTime is when it happened, to the microsecond. Zero when added: now.
	CreateTime time.Time
	// UpdateTime is when the item was last written. Set by the server.
	UpdateTime time.Time
	// ExpireTime is when the item expires. Zero: never.
	ExpireTime time.Time
	// TTL is the time until it expires, in place of ExpireTime. Only in items to be written.
	TTL time.Duration
	// Labels are for exact matching, as in {"topic": "travel"}. At most 64; a key has 1 to 64 bytes, a
	// value at most 256.
	Labels map[string]string
	// Metadata are JSON values stored with the item: at most 64 KiB, 32 levels deep.
	Metadata map[string]any
	// Embedding is the content's vector: 1 to 4096 finite numbers. Nil when added: the server embeds
	// the text. Returned only if requested.
	Embedding []float32
	// Importance of the item, 0 to 1, for searches that weigh it. Nil: counts as 0.5.
	Importance *float64
	// Index is the text that searches see in place of the content, by words and by vectors. Empty:
	// searches do not find the item. Nil: the content.
	Index *string
	// Provenance of this version of the item. Nil from the server: written by a caller without a name
	// and without any provenance, and therefore trusted. [Client.Update] cannot change it.
	Provenance *Provenance
	// Revision of the namespace at which the item was last written. Set by the server.
	Revision int64
	// Kind of the item. Set by the server, and kept in imports.
	Kind ItemKind
	// FacetJSON is the data of the item's service. Only in exports and imports.
	FacetJSON string
	// Degraded lists what the server could not do when this client wrote the item, such as embedding
	// its text. Empty: it did everything.
	Degraded []Degradation
}

var (
	_ MemoryItem = (*Item)(nil)
	_ MemoryItem = (*ChatMessageMemoryItem)(nil)
	_ MemoryItem = (*ToolCallResultMemoryItem)(nil)
)

// GetId returns the ID.
func (i *Item) GetId() MemoryItemId { return i.ID }

// GetContent returns the Content.
func (i *Item) GetContent() any { return i.Content }

// GetCreatedAt returns the CreateTime.
func (i *Item) GetCreatedAt() time.Time { return i.CreateTime }

// AsMessage returns a message unchanged, and a tool's result as a message of the tool. Text and data are
// not messages.
func (i *Item) AsMessage() (*llms.Message, bool) {
	switch content := i.Content.(type) {
	case *llms.Message:
		return content, content != nil
	case *llms.ToolCallResult:
		return toolMessage(content, i.CreateTime), content != nil
	}
	return nil, false
}

// ChatMessageMemoryItem is an item that holds a message.
type ChatMessageMemoryItem struct {
	memoryId MemoryItemId
	message  *llms.Message
}

// NewChatMessageMemoryItem returns an item with a new id that holds a message.
func NewChatMessageMemoryItem(message *llms.Message) MemoryItem {
	return &ChatMessageMemoryItem{memoryId: MemoryItemId(newUUID()), message: message}
}

// GetId returns the item's id.
func (c *ChatMessageMemoryItem) GetId() MemoryItemId { return c.memoryId }

// GetContent returns the message, a *[llms.Message].
func (c *ChatMessageMemoryItem) GetContent() any { return c.message }

// GetCreatedAt returns the message's time. Zero: it has none.
func (c *ChatMessageMemoryItem) GetCreatedAt() time.Time {
	if c.message == nil {
		return time.Time{}
	}
	return c.message.Timestamp
}

// AsMessage returns the message. False: there is none.
func (c *ChatMessageMemoryItem) AsMessage() (*llms.Message, bool) {
	return c.message, c.message != nil
}

// ToolCallResultMemoryItem is an item that holds a tool's result.
type ToolCallResultMemoryItem struct {
	memoryId  MemoryItemId
	result    *llms.ToolCallResult
	timestamp time.Time
}

// NewToolCallResultMemoryItem returns an item with a new id and the current time that holds a tool's
// result.
func NewToolCallResultMemoryItem(result *llms.ToolCallResult) MemoryItem {
	return &ToolCallResultMemoryItem{
		memoryId:  MemoryItemId(newUUID()),
		result:    result,
		timestamp: time.Now().UTC().Truncate(time.Microsecond),
	}
}

// GetId returns the item's id.
func (t *ToolCallResultMemoryItem) GetId() MemoryItemId { return t.memoryId }

// GetContent returns the tool's result, a *[llms.ToolCallResult].
func (t *ToolCallResultMemoryItem) GetContent() any { return t.result }

// GetCreatedAt returns when the item was made.
func (t *ToolCallResultMemoryItem) GetCreatedAt() time.Time { return t.timestamp }

// AsMessage returns a message of the tool. False: there is no result.
func (t *ToolCallResultMemoryItem) AsMessage() (*llms.Message, bool) {
	return toolMessage(t.result, t.timestamp), t.result != nil
}

func toolMessage(result *llms.ToolCallResult, at time.Time) *llms.Message {
	if result == nil {
		return nil
	}
	message := llms.NewToolCallResultMessage(result)
	message.Timestamp = at
	return message
}

// NewItem converts any [MemoryItem] to an [*Item], as adding does. An [*Item] is copied. From another
// implementation it takes the id, the time and the content: a tool's result, if GetContent returns one;
// else the message of AsMessage; else the value of GetContent, which may be anything that encoding/json
// writes as a string or an object.
//
// It returns [ErrInvalidArgument] for an item without any of these.
func NewItem(source MemoryItem) (*Item, error) {
	if isNil(source) {
		return nil, invalidArgument("item", "item: the item is missing")
	}
	if own, ok := source.(*Item); ok {
		copied := *own
		return &copied, nil
	}
	content, err := contentOf(source)
	if err != nil {
		return nil, err
	}
	return &Item{ID: source.GetId(), Content: content, CreateTime: source.GetCreatedAt()}, nil
}

func contentOf(source MemoryItem) (any, error) {
	content := source.GetContent()
	if result, ok := content.(*llms.ToolCallResult); ok && result != nil {
		return result, nil
	}
	if message, ok := source.AsMessage(); ok && message != nil {
		return message, nil
	}
	switch content := content.(type) {
	case string, map[string]any:
		return content, nil
	case *llms.Message, *llms.ToolCallResult, nil:
		return nil, invalidArgument("item.content", "item.content: must be given")
	}
	value, err := valueFrom(content, "item.content")
	if err != nil {
		return nil, err
	}
	switch plain := valueTo(value).(type) {
	case string, map[string]any:
		return plain, nil
	}
	return nil, invalidArgument("item.content", "item.content: must be a message, a text or an object")
}

// isNil reports whether a value is nil or a nil pointer.
func isNil(value any) bool {
	reflected := reflect.ValueOf(value)
	return !reflected.IsValid() || reflected.Kind() == reflect.Pointer && reflected.IsNil()
}
