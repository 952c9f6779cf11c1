package agentgo

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	agentllms "github.com/oopslink/agent-go/pkg/support/llms"

	"github.com/memory-service/memory-service/clients/go/llms"
)

// plainPart returns a part in the server's form; nil if that would lose something.
func plainPart(part agentllms.Part) (llms.Part, error) {
	if value := reflect.ValueOf(part); !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		return nil, errors.New("a message has a part that is nil")
	}
	switch part := part.(type) {
	case *agentllms.TextPart:
		if isText(part.Text) {
			return &llms.TextPart{Text: part.Text}, nil
		}
	case *agentllms.DataPart:
		data, fits, err := object(part.Data)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		if fits && data != nil {
			return &llms.DataPart{Data: data}, nil
		}
	case *agentllms.BinaryPart:
		return plainBinary(part), nil
	case *agentllms.ToolCall:
		arguments, fits, err := object(part.Arguments)
		if err != nil {
			return nil, fmt.Errorf("the arguments of %q: %w", part.Name, err)
		}
		if fits && isName(part.ToolCallId, nameBytesMax) && isName(part.Name, nameBytesMax) {
			return &llms.ToolCall{ToolCallId: part.ToolCallId, Name: part.Name, Arguments: arguments}, nil
		}
	case *agentllms.ToolCallResult:
		return plainResult(part)
	default:
		return nil, fmt.Errorf("a message cannot hold a %T", part)
	}
	return nil, nil
}

func plainBinary(part *agentllms.BinaryPart) llms.Part {
	for _, text := range []*string{part.Name, part.URL, &part.MIMEType} {
		if text != nil && !isText(*text) {
			return nil
		}
	}
	if part.Content != nil && len(part.Content) == 0 && part.ContentLength != 0 {
		return nil // The content is empty, but the length is not 0.
	}
	plain := &llms.BinaryPart{Name: part.Name, URL: part.URL, MIMEType: part.MIMEType, Content: part.Content}
	if part.Content != nil || part.ContentLength != 0 {
		length := part.ContentLength
		plain.ContentLength = &length
	}
	return plain
}

func plainResult(part *agentllms.ToolCallResult) (llms.Part, error) {
	result, fits, err := object(part.Result)
	if err != nil {
		return nil, fmt.Errorf("the result of %q: %w", part.Name, err)
	}
	if !fits || !isName(part.ToolCallId, nameBytesMax) || !isName(part.Name, nameBytesMax) {
		return nil, nil
	}
	plain := &llms.ToolCallResult{ToolCallId: part.ToolCallId, Name: part.Name}
	if result != nil {
		plain.Result = result
	}
	return plain, nil
}

// object returns a map as JSON represents it, and whether the server can store it as data.
func object(data map[string]any) (map[string]any, bool, error) {
	if data == nil {
		return nil, true, nil
	}
	kept, err := toJSON(data)
	if err != nil {
		return nil, false, err
	}
	return kept.value.(map[string]any), kept.fits, nil
}

// agentPart returns a part in agent-go's own type, or nil for an unknown kind.
func agentPart(part llms.Part) agentllms.Part {
	switch part := part.(type) {
	case *llms.TextPart:
		return &agentllms.TextPart{Text: part.Text}
	case *llms.DataPart:
		return &agentllms.DataPart{Data: part.Data}
	case *llms.BinaryPart:
		return agentBinary(part)
	case *llms.ToolCall:
		return &agentllms.ToolCall{ToolCallId: part.ToolCallId, Name: part.Name, Arguments: part.Arguments}
	case *llms.ToolCallResult:
		return agentResult(part)
	}
	return nil
}

func agentBinary(part *llms.BinaryPart) *agentllms.BinaryPart {
	binary := &agentllms.BinaryPart{Name: part.Name, URL: part.URL, MIMEType: part.MIMEType}
	if len(part.Content) > 0 {
		binary.Content = part.Content
	}
	if part.ContentLength == nil {
		binary.ContentLength = int64(len(part.Content))
		return binary
	}
	binary.ContentLength = *part.ContentLength
	if binary.Content == nil && binary.ContentLength == 0 {
		binary.Content = []byte{}
	}
	return binary
}

// agentResult returns a tool's result. In agent-go that is an object; any other value, stored by a client
// in another language, becomes an object with one field.
func agentResult(part *llms.ToolCallResult) *agentllms.ToolCallResult {
	result := &agentllms.ToolCallResult{ToolCallId: part.ToolCallId, Name: part.Name}
	value := part.Result
	if _, isNull := value.(llms.Null); isNull {
		value = nil
	}
	object, isObject := value.(map[string]any)
	switch {
	case part.IsError:
		result.Result = map[string]any{"error": value}
	case isObject:
		result.Result = object
	case value != nil:
		result.Result = map[string]any{"result": value}
	}
	return result
}

// packedTool is the JSON of a tool call or a tool's result that was packed.
type packedTool struct {
	ToolCallID string          `json:"tool_call_id"`
	Name       string          `json:"name"`
	Value      json.RawMessage `json:"value"`
}

// packedBinary is the JSON of a file that was packed.
type packedBinary struct {
	Name          *string `json:"name"`
	URL           *string `json:"url"`
	MIMEType      string  `json:"mime_type"`
	Content       []byte  `json:"content"`
	ContentLength int64   `json:"content_length"`
}

// pack returns a part as a file: a text unchanged, anything else as JSON. It stores what plainPart cannot
// represent: parts larger than the server takes, integers beyond 2^53, a nil map of data, and texts that
// are not UTF-8.
func pack(part agentllms.Part) (*llms.BinaryPart, error) {
	var content []byte
	var err error
	mimeType := "application/json"
	switch part := part.(type) {
	case *agentllms.TextPart:
		mimeType, content = "text/plain", []byte(part.Text)
	case *agentllms.DataPart:
		content, err = json.Marshal(part.Data)
	case *agentllms.BinaryPart:
		content, err = json.Marshal(packedBinary(*part))
	case *agentllms.ToolCall:
		content, err = packTool(part.ToolCallId, part.Name, part.Arguments)
	case *agentllms.ToolCallResult:
		content, err = packTool(part.ToolCallId, part.Name, part.Result)
	}
	length := int64(len(content))
	return &llms.BinaryPart{MIMEType: mimeType, Content: content, ContentLength: &length}, err
}

func packTool(id, name string, value map[string]any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(packedTool{ToolCallID: id, Name: name, Value: text})
}

// unpack returns the part from which pack made a file.
func unpack(kind agentllms.PartType, content []byte) (agentllms.Part, error) {
	switch kind {
	case agentllms.PartTypeText:
		return &agentllms.TextPart{Text: string(content)}, nil
	case agentllms.PartTypeData:
		data, err := unpackObject(content)
		return &agentllms.DataPart{Data: data}, err
	case agentllms.PartTypeBinary:
		var packed packedBinary
		err := json.Unmarshal(content, &packed)
		binary := agentllms.BinaryPart(packed)
		return &binary, err
	}
	var packed packedTool
	if err := json.Unmarshal(content, &packed); err != nil {
		return nil, err
	}
	value, err := unpackObject(packed.Value)
	if kind == agentllms.PartTypeToolCall {
		return &agentllms.ToolCall{ToolCallId: packed.ToolCallID, Name: packed.Name, Arguments: value}, err
	}
	return &agentllms.ToolCallResult{ToolCallId: packed.ToolCallID, Name: packed.Name, Result: value}, err
}

func unpackObject(text []byte) (map[string]any, error) {
	value, err := fromJSON(text)
	object, isObject := value.(map[string]any)
	if err == nil && !isObject && value != nil {
		return nil, fmt.Errorf("must be an object, not a %T", value)
	}
	return object, err
}
