package memory

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
	"github.com/memory-service/memory-service/clients/go/llms"
)

// messageFrom converts a message with all its parts; where names it in errors.
func messageFrom(message *llms.Message, where string) (*memoryv1.ChatMessage, error) {
	if message == nil {
		return nil, invalidArgument(where, where+": the message is missing")
	}
	role, err := enumFrom[memoryv1.Role](memoryv1.Role_value, "ROLE_", message.Creator.Role, where+".role")
	if err != nil {
		return nil, err
	}
	converted := &memoryv1.ChatMessage{
		MessageId:  message.MessageId,
		Role:       role,
		Name:       message.Creator.Name,
		Parts:      make([]*memoryv1.Part, len(message.Parts)),
		CreateTime: timeFrom(message.Timestamp),
	}
	if model := message.Model; model != nil {
		converted.Model = &memoryv1.Model{Provider: model.Provider, Id: model.ID}
	}
	for index, part := range message.Parts {
		if converted.Parts[index], err = partFrom(part, fmt.Sprintf("%s.parts[%d]", where, index)); err != nil {
			return nil, err
		}
	}
	return converted, nil
}

// messageTo converts to a message. Parts of a kind that only a newer server knows are omitted.
func messageTo(message *memoryv1.ChatMessage) *llms.Message {
	converted := &llms.Message{
		MessageId: message.GetMessageId(),
		Creator:   llms.Creator{Role: enumTo[llms.Role](message.GetRole(), "ROLE_"), Name: message.Name},
		Timestamp: timeTo(message.GetCreateTime()),
	}
	if model := message.GetModel(); model != nil {
		converted.Model = &llms.Model{Provider: model.GetProvider(), ID: model.GetId()}
	}
	for _, part := range message.GetParts() {
		if piece := partTo(part); piece != nil {
			converted.Parts = append(converted.Parts, piece)
		}
	}
	return converted
}

func partFrom(part llms.Part, where string) (*memoryv1.Part, error) {
	if isNil(part) {
		return nil, invalidArgument(where+".part", where+": the part is missing")
	}
	switch part := part.(type) {
	case *llms.TextPart:
		return &memoryv1.Part{Part: &memoryv1.Part_Text{Text: part.Text}}, nil
	case *llms.DataPart:
		data, err := structFrom(part.Data, where+".data")
		return &memoryv1.Part{Part: &memoryv1.Part_Data{Data: data}}, err
	case *llms.BinaryPart:
		return &memoryv1.Part{Part: &memoryv1.Part_Binary{Binary: binaryFrom(part)}}, nil
	case *llms.ToolCall:
		call, err := toolCallFrom(part, where+".tool_call")
		return &memoryv1.Part{Part: &memoryv1.Part_ToolCall{ToolCall: call}}, err
	case *llms.ToolCallResult:
		result, err := toolCallResultFrom(part, where+".tool_call_result")
		return &memoryv1.Part{Part: &memoryv1.Part_ToolCallResult{ToolCallResult: result}}, err
	}
	return nil, invalidArgument(where+".part", fmt.Sprintf("%s: a message cannot hold a %T", where, part))
}

func partTo(part *memoryv1.Part) llms.Part {
	switch part := part.GetPart().(type) {
	case *memoryv1.Part_Text:
		return &llms.TextPart{Text: part.Text}
	case *memoryv1.Part_Data:
		return &llms.DataPart{Data: structTo(part.Data)}
	case *memoryv1.Part_Binary:
		return binaryTo(part.Binary)
	case *memoryv1.Part_ToolCall:
		return toolCallTo(part.ToolCall)
	case *memoryv1.Part_ToolCallResult:
		return toolCallResultTo(part.ToolCallResult)
	}
	return nil
}

func binaryFrom(part *llms.BinaryPart) *memoryv1.BinaryPart {
	return &memoryv1.BinaryPart{
		Name:          part.Name,
		Url:           part.URL,
		MimeType:      part.MIMEType,
		Content:       part.Content,
		ContentLength: part.ContentLength,
	}
}

func binaryTo(part *memoryv1.BinaryPart) *llms.BinaryPart {
	return &llms.BinaryPart{
		Name:          part.Name,
		URL:           part.Url,
		MIMEType:      part.GetMimeType(),
		Content:       part.GetContent(),
		ContentLength: part.ContentLength,
	}
}

func toolCallFrom(call *llms.ToolCall, where string) (*memoryv1.ToolCall, error) {
	arguments, err := optionalStructFrom(call.Arguments, where+".arguments")
	if err != nil {
		return nil, err
	}
	return &memoryv1.ToolCall{ToolCallId: call.ToolCallId, Name: call.Name, Arguments: arguments}, nil
}

func toolCallTo(call *memoryv1.ToolCall) *llms.ToolCall {
	return &llms.ToolCall{
		ToolCallId: call.GetToolCallId(),
		Name:       call.GetName(),
		Arguments:  structTo(call.GetArguments()),
	}
}

func toolCallResultFrom(result *llms.ToolCallResult, where string) (*memoryv1.ToolCallResult, error) {
	if result == nil {
		return nil, invalidArgument(where, where+": the result is missing")
	}
	var value *structpb.Value // A nil Result stays unset: not given.
	if result.Result != nil {
		var err error
		if value, err = valueFrom(result.Result, where+".result"); err != nil {
			return nil, err
		}
	}
	return &memoryv1.ToolCallResult{
		ToolCallId: result.ToolCallId,
		Name:       result.Name,
		Result:     value,
		IsError:    result.IsError,
	}, nil
}

func toolCallResultTo(result *memoryv1.ToolCallResult) *llms.ToolCallResult {
	return &llms.ToolCallResult{
		ToolCallId: result.GetToolCallId(),
		Name:       result.GetName(),
		Result:     resultValueTo(result.GetResult()),
		IsError:    result.GetIsError(),
	}
}

func resultValueTo(value *structpb.Value) any {
	if _, isNull := value.GetKind().(*structpb.Value_NullValue); isNull {
		return llms.Null{}
	}
	return valueTo(value)
}
