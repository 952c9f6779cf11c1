package main

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
	"github.com/memory-service/memory-service/clients/go/llms"
)

// item reads an item to be written. Nil: there is none.
func (f *fields) item() *memory.Item {
	if f == nil {
		return nil
	}
	return &memory.Item{
		ID:         memory.MemoryItemId(f.text("id")),
		SessionID:  f.text("session_id"),
		Content:    f.content(),
		CreateTime: f.time("create_time"),
		ExpireTime: f.time("expire_time"),
		TTL:        f.duration("ttl"),
		Labels:     f.labels("labels"),
		Metadata:   f.object("metadata"),
		Embedding:  f.embedding("embedding"),
		Importance: f.optionalFloat("importance"),
		Index:      f.optionalText("index"),
		Provenance: f.child("provenance").provenance(),
	}
}

// provenance reads the provenance of an item. Nil: there is none.
func (f *fields) provenance() *memory.Provenance {
	if f == nil {
		return nil
	}
	return &memory.Provenance{
		Writer:       f.text("writer"),
		CredentialID: f.text("credential_id"),
		Source:       memory.SourceKind(f.enum("source")),
		SourceURI:    f.text("source_uri"),
		ParentIDs:    each(f.texts("parent_ids"), func(id string) memory.MemoryItemId { return memory.MemoryItemId(id) }),
		Model:        f.text("model"),
		Trust:        f.optionalFloat("trust"),
		WriteTime:    f.time("write_time"),
	}
}

func provenanceOf(provenance *memory.Provenance) *memoryv1.Provenance {
	if provenance == nil {
		return nil
	}
	return &memoryv1.Provenance{
		Writer:       provenance.Writer,
		CredentialId: provenance.CredentialID,
		Source:       enumOf[memoryv1.SourceKind](provenance.Source),
		SourceUri:    provenance.SourceURI,
		ParentIds:    each(provenance.ParentIDs, func(id memory.MemoryItemId) string { return string(id) }),
		Model:        provenance.Model,
		Trust:        provenance.Trust,
		WriteTime:    timeOf(provenance.WriteTime),
	}
}

// importedItem reads an item to be imported, in the form of an export.
func (f *fields) importedItem() *memory.Item {
	item := f.item()
	item.UpdateTime = f.time("update_time")
	item.Revision = f.integer("revision")
	item.Kind = kind(f.enum("kind"))
	item.FacetJSON = f.text("facet_json")
	return item
}

func kind(text string) memory.ItemKind {
	if text == "" {
		return memory.KindPlain
	}
	return memory.ItemKind(text)
}

func (f *fields) content() any {
	switch {
	case f.has("text"):
		return f.text("text")
	case f.has("data"):
		return f.object("data")
	case f.has("chat_message"):
		return f.child("chat_message").chatMessage()
	case f.has("tool_call_result"):
		return f.child("tool_call_result").toolCallResult()
	}
	return nil
}

// embedding reads a vector. An empty one that is set is not nil.
func (f *fields) embedding(name protoreflect.Name) []float32 {
	inner := f.child(name)
	if inner == nil {
		return nil
	}
	list := inner.get("values").List()
	vector := make([]float32, list.Len())
	for i := range vector {
		vector[i] = float32(list.Get(i).Float())
	}
	return vector
}

func (f *fields) chatMessage() *llms.Message {
	message := &llms.Message{
		MessageId: f.text("message_id"),
		Creator:   llms.Creator{Role: llms.Role(f.enum("role")), Name: f.optionalText("name")},
		Timestamp: f.time("create_time"),
	}
	if model := f.child("model"); model != nil {
		message.Model = &llms.Model{Provider: model.text("provider"), ID: model.text("id")}
	}
	for _, part := range f.childList("parts") {
		message.Parts = append(message.Parts, part.part())
	}
	return message
}

func (f *fields) part() llms.Part {
	switch {
	case f.has("text"):
		return &llms.TextPart{Text: f.text("text")}
	case f.has("data"):
		return &llms.DataPart{Data: f.object("data")}
	case f.has("binary"):
		return f.child("binary").binary()
	case f.has("tool_call"):
		return f.child("tool_call").toolCall()
	case f.has("tool_call_result"):
		return f.child("tool_call_result").toolCallResult()
	}
	return nil
}

func (f *fields) binary() *llms.BinaryPart {
	return &llms.BinaryPart{
		Name:          f.optionalText("name"),
		URL:           f.optionalText("url"),
		MIMEType:      f.text("mime_type"),
		Content:       f.get("content").Bytes(),
		ContentLength: f.optionalInteger("content_length"),
	}
}

func (f *fields) toolCall() *llms.ToolCall {
	return &llms.ToolCall{
		ToolCallId: f.text("tool_call_id"), Name: f.text("name"), Arguments: f.object("arguments"),
	}
}

func (f *fields) toolCallResult() *llms.ToolCallResult {
	result := &llms.ToolCallResult{
		ToolCallId: f.text("tool_call_id"),
		Name:       f.text("name"),
		Result:     f.value("result"),
		IsError:    f.flag("is_error"),
	}
	if f.has("result") && result.Result == nil {
		result.Result = llms.Null{} // nil means "not given" for the client.
	}
	return result
}

func itemOf(item *memory.Item) *memoryv1.MemoryItem {
	if item == nil {
		return nil
	}
	converted := &memoryv1.MemoryItem{
		Id:         string(item.ID),
		SessionId:  item.SessionID,
		CreateTime: timeOf(item.CreateTime),
		UpdateTime: timeOf(item.UpdateTime),
		ExpireTime: timeOf(item.ExpireTime),
		Ttl:        durationOf(item.TTL),
		Labels:     item.Labels,
		Metadata:   objectOf(item.Metadata),
		Importance: item.Importance,
		Index:      item.Index,
		Provenance: provenanceOf(item.Provenance),
		Revision:   item.Revision,
		FacetJson:  item.FacetJSON,
	}
	if item.Kind != memory.KindPlain {
		converted.Kind = enumOf[memoryv1.ItemKind](item.Kind)
	}
	if item.Embedding != nil {
		converted.Embedding = &memoryv1.Embedding{Values: item.Embedding}
	}
	setContent(converted, item.Content)
	return converted
}

func setContent(item *memoryv1.MemoryItem, content any) {
	switch content := content.(type) {
	case string:
		item.Content = &memoryv1.MemoryItem_Text{Text: content}
	case map[string]any:
		item.Content = &memoryv1.MemoryItem_Data{Data: objectOf(content)}
	case *llms.Message:
		item.Content = &memoryv1.MemoryItem_ChatMessage{ChatMessage: messageOf(content)}
	case *llms.ToolCallResult:
		item.Content = &memoryv1.MemoryItem_ToolCallResult{ToolCallResult: toolCallResultOf(content)}
	}
}

func messageOf(message *llms.Message) *memoryv1.ChatMessage {
	converted := &memoryv1.ChatMessage{
		MessageId:  message.MessageId,
		Role:       enumOf[memoryv1.Role](message.Creator.Role),
		Name:       message.Creator.Name,
		Parts:      each(message.Parts, partOf),
		CreateTime: timeOf(message.Timestamp),
	}
	if model := message.Model; model != nil {
		converted.Model = &memoryv1.Model{Provider: model.Provider, Id: model.ID}
	}
	return converted
}

func partOf(part llms.Part) *memoryv1.Part {
	switch part := part.(type) {
	case *llms.TextPart:
		return &memoryv1.Part{Part: &memoryv1.Part_Text{Text: part.Text}}
	case *llms.DataPart:
		return &memoryv1.Part{Part: &memoryv1.Part_Data{Data: objectOf(part.Data)}}
	case *llms.BinaryPart:
		return &memoryv1.Part{Part: &memoryv1.Part_Binary{Binary: &memoryv1.BinaryPart{
			Name:          part.Name,
			Url:           part.URL,
			MimeType:      part.MIMEType,
			Content:       part.Content,
			ContentLength: part.ContentLength,
		}}}
	case *llms.ToolCall:
		return &memoryv1.Part{Part: &memoryv1.Part_ToolCall{ToolCall: &memoryv1.ToolCall{
			ToolCallId: part.ToolCallId, Name: part.Name, Arguments: objectOf(part.Arguments),
		}}}
	case *llms.ToolCallResult:
		return &memoryv1.Part{Part: &memoryv1.Part_ToolCallResult{ToolCallResult: toolCallResultOf(part)}}
	}
	return &memoryv1.Part{}
}

func toolCallResultOf(result *llms.ToolCallResult) *memoryv1.ToolCallResult {
	return &memoryv1.ToolCallResult{
		ToolCallId: result.ToolCallId,
		Name:       result.Name,
		Result:     valueOf(result.Result),
		IsError:    result.IsError,
	}
}
