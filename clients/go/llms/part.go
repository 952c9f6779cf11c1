package llms

// PartType is the type of a part.
type PartType string

// The types of parts.
const (
	PartTypeText           PartType = "text"
	PartTypeData           PartType = "data"
	PartTypeBinary         PartType = "binary"
	PartTypeToolCall       PartType = "tool_call"
	PartTypeToolCallResult PartType = "tool_call_result"
)

// Part is one piece of a message: a *[TextPart], *[DataPart], *[BinaryPart], *[ToolCall] or
// *[ToolCallResult]. A memory refuses other implementations.
type Part interface {
	// Type returns the type of the part.
	Type() PartType
}

// TextPart is a text.
type TextPart struct {
	Text string
}

// DataPart is structured data.
type DataPart struct {
	// Data are JSON values by name.
	Data map[string]any
}

// BinaryPart is a file, such as an image or audio, or a reference to one.
type BinaryPart struct {
	// Name of the file. Nil: not given.
	Name *string
	// URL of the file, which the server never opens. Nil: not given.
	URL *string
	// MIMEType of the file, such as "image/png". Empty: not given.
	MIMEType string
	// Content of the file, at most 1 MiB. Empty: an empty file, or not loaded.
	Content []byte
	// ContentLength of the file in bytes. Negative: the content is not loaded. Nil: not given.
	ContentLength *int64
}

// ToolCall is a request to call a tool.
type ToolCall struct {
	// ToolCallId links the call to its result. Empty: none.
	ToolCallId string
	// Name of the tool.
	Name string
	// Arguments are JSON values by name. Nil: not given.
	Arguments map[string]any
}

// ToolCallResult is a tool's result.
type ToolCallResult struct {
	// ToolCallId of the call that it answers. Empty: none.
	ToolCallId string
	// Name of the tool.
	Name string
	// Result is any JSON value, as encoding/json writes it, or [Null]. Nil: not given.
	Result any
	// IsError reports that the tool failed; then the result describes the failure.
	IsError bool
}

// Null is JSON's null as the result of a tool, which differs from no result.
type Null struct{}

// MarshalJSON returns "null".
func (Null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Type returns PartTypeText.
func (*TextPart) Type() PartType { return PartTypeText }

// Type returns PartTypeData.
func (*DataPart) Type() PartType { return PartTypeData }

// Type returns PartTypeBinary.
func (*BinaryPart) Type() PartType { return PartTypeBinary }

// Type returns PartTypeToolCall.
func (*ToolCall) Type() PartType { return PartTypeToolCall }

// Type returns PartTypeToolCallResult.
func (*ToolCallResult) Type() PartType { return PartTypeToolCallResult }
