package memory

import (
	"fmt"
	"math"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
	"github.com/memory-service/memory-service/clients/go/llms"
)

// itemFrom converts an item to be written, without the fields that only the server sets. where names
// it in errors.
func itemFrom(item *Item, where string) (*memoryv1.MemoryItem, error) {
	if item == nil {
		return nil, invalidArgument(where, where+": the item is missing")
	}
	metadata, err := optionalStructFrom(item.Metadata, where+".metadata")
	if err != nil {
		return nil, err
	}
	converted := &memoryv1.MemoryItem{
		Id:         string(item.ID),
		SessionId:  item.SessionID,
		CreateTime: timeFrom(item.CreateTime),
		ExpireTime: timeFrom(item.ExpireTime),
		Ttl:        durationFrom(item.TTL),
		Labels:     item.Labels,
		Metadata:   metadata,
		Embedding:  embeddingFrom(item.Embedding),
		Importance: item.Importance,
		Index:      item.Index,
	}
	if converted.Provenance, err = provenanceFrom(item.Provenance, where+".provenance"); err != nil {
		return nil, err
	}
	if err := setContent(converted, item.Content, where+"."); err != nil {
		return nil, err
	}
	return converted, nil
}

// importedItemFrom converts an item to be imported, with its kind and its service's data.
func importedItemFrom(item *Item, where string) (*memoryv1.MemoryItem, error) {
	converted, err := itemFrom(item, where)
	if err != nil {
		return nil, err
	}
	if converted.Kind, err = kindFrom(item.Kind, where+".kind"); err != nil {
		return nil, err
	}
	converted.FacetJson = item.FacetJSON
	return converted, nil
}

func setContent(item *memoryv1.MemoryItem, content any, where string) error {
	switch content := content.(type) {
	case nil: // The server reports what is missing.
	case string:
		item.Content = &memoryv1.MemoryItem_Text{Text: content}
	case *llms.Message:
		message, err := messageFrom(content, where+"chat_message")
		if err != nil {
			return err
		}
		item.Content = &memoryv1.MemoryItem_ChatMessage{ChatMessage: message}
	case *llms.ToolCallResult:
		result, err := toolCallResultFrom(content, where+"tool_call_result")
		if err != nil {
			return err
		}
		item.Content = &memoryv1.MemoryItem_ToolCallResult{ToolCallResult: result}
	case map[string]any:
		data, err := structFrom(content, where+"data")
		if err != nil {
			return err
		}
		item.Content = &memoryv1.MemoryItem_Data{Data: data}
	default:
		return invalidArgument(where+"content", fmt.Sprintf("%scontent: an item cannot hold a %T", where, content))
	}
	return nil
}

// itemTo converts to an item. Nil stays nil.
func itemTo(item *memoryv1.MemoryItem) *Item {
	if item == nil {
		return nil
	}
	return &Item{
		ID:         MemoryItemId(item.GetId()),
		SessionID:  item.GetSessionId(),
		Content:    contentTo(item),
		CreateTime: timeTo(item.GetCreateTime()),
		UpdateTime: timeTo(item.GetUpdateTime()),
		ExpireTime: timeTo(item.GetExpireTime()),
		TTL:        durationTo(item.GetTtl()),
		Labels:     item.GetLabels(),
		Metadata:   structTo(item.GetMetadata()),
		Embedding:  item.GetEmbedding().GetValues(),
		Importance: item.Importance,
		Index:      item.Index,
		Provenance: provenanceTo(item.GetProvenance()),
		Revision:   item.GetRevision(),
		Kind:       kindTo(item.GetKind()),
		FacetJSON:  item.GetFacetJson(),
	}
}

func itemsTo(items []*memoryv1.MemoryItem) []*Item {
	converted := make([]*Item, len(items))
	for index, item := range items {
		converted[index] = itemTo(item)
	}
	return converted
}

// writtenTo converts an item as written, with what the server could not do for it.
func writtenTo(item *memoryv1.MemoryItem, degraded []*memoryv1.Degradation) *Item {
	written := itemTo(item)
	if written != nil {
		written.Degraded = degradedTo(degraded)
	}
	return written
}

// skippedItem returns the item that was to be added, marked as not written.
func skippedItem(item *Item, degraded []*memoryv1.Degradation) *Item {
	skipped := *item
	skipped.Revision, skipped.Degraded = 0, degradedTo(degraded)
	return &skipped
}

func contentTo(item *memoryv1.MemoryItem) any {
	switch content := item.GetContent().(type) {
	case *memoryv1.MemoryItem_Text:
		return content.Text
	case *memoryv1.MemoryItem_ChatMessage:
		return messageTo(content.ChatMessage)
	case *memoryv1.MemoryItem_ToolCallResult:
		return toolCallResultTo(content.ToolCallResult)
	case *memoryv1.MemoryItem_Data:
		return structTo(content.Data)
	}
	return nil
}

func kindFrom(kind ItemKind, field string) (memoryv1.ItemKind, error) {
	if kind == KindPlain {
		return memoryv1.ItemKind_ITEM_KIND_UNSPECIFIED, nil
	}
	return enumFrom[memoryv1.ItemKind](memoryv1.ItemKind_value, "ITEM_KIND_", kind, field)
}

func kindsFrom(kinds []ItemKind, field string) ([]memoryv1.ItemKind, error) {
	var numbers []memoryv1.ItemKind
	for _, kind := range kinds {
		number, err := kindFrom(kind, field)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

func kindTo(number memoryv1.ItemKind) ItemKind {
	if number == memoryv1.ItemKind_ITEM_KIND_UNSPECIFIED {
		return KindPlain
	}
	return enumTo[ItemKind](number, "ITEM_KIND_")
}

// embeddingFrom converts a vector. Nil stays unset; an empty one is sent, for the server to reject.
func embeddingFrom(vector []float32) *memoryv1.Embedding {
	if vector == nil {
		return nil
	}
	return &memoryv1.Embedding{Values: vector}
}

// int32From converts a number to protobuf's 32 bits.
func int32From(number int, field string) (int32, error) {
	if number > math.MaxInt32 || number < math.MinInt32 {
		return 0, invalidArgument(field, fmt.Sprintf("%s: %d is out of range", field, number))
	}
	return int32(number), nil
}
