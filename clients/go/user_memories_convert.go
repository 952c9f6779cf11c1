package memory

import (
	"fmt"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

func categoryFrom(category MemoryCategory, field string) (memoryv1.MemoryCategory, error) {
	return enumFrom[memoryv1.MemoryCategory](memoryv1.MemoryCategory_value, "MEMORY_CATEGORY_", category, field)
}

func categoriesFrom(categories []MemoryCategory) ([]memoryv1.MemoryCategory, error) {
	var numbers []memoryv1.MemoryCategory
	for index, category := range categories {
		number, err := categoryFrom(category, fmt.Sprintf("categories[%d]", index))
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

func onContradictionFrom(choice OnContradiction) (memoryv1.OnContradiction, error) {
	return enumFrom[memoryv1.OnContradiction](
		memoryv1.OnContradiction_value, "ON_CONTRADICTION_", choice, "on_contradiction")
}

func modeFrom(mode RetrieveMode) (memoryv1.RetrieveMode, error) {
	return enumFrom[memoryv1.RetrieveMode](memoryv1.RetrieveMode_value, "RETRIEVE_MODE_", mode, "mode")
}

// optionalInt32From converts an optional number. Nil stays unset.
func optionalInt32From(number *int, field string) (*int32, error) {
	if number == nil {
		return nil, nil
	}
	converted, err := int32From(*number, field)
	return &converted, err
}

// sourceFrom converts the fields of a source that a caller sets. Nil stays unset.
func sourceFrom(source *MemorySource) *memoryv1.MemorySource {
	if source == nil {
		return nil
	}
	return &memoryv1.MemorySource{
		SessionId: source.SessionID,
		ItemIds:   source.ItemIDs,
		Quote:     source.Quote,
		Actor:     source.Actor,
	}
}

// correctionFrom converts new values to a memory with these values.
func correctionFrom(correction *MemoryCorrection) (*memoryv1.UserMemory, error) {
	category, err := categoryFrom(correction.Category, "memory.category")
	if err != nil {
		return nil, err
	}
	metadata, err := optionalStructFrom(correction.Metadata, "memory.metadata")
	if err != nil {
		return nil, err
	}
	memory := &memoryv1.UserMemory{
		Content:        correction.Content,
		Category:       category,
		Reasoning:      correction.Reasoning,
		ValidFromTime:  timeFrom(correction.ValidFromTime),
		ValidUntilTime: timeFrom(correction.ValidUntilTime),
		ExpireTime:     timeFrom(correction.ExpireTime),
		Ttl:            durationFrom(correction.TTL),
		Labels:         correction.Labels,
		Metadata:       metadata,
	}
	if correction.Importance != nil {
		memory.Importance = &memoryv1.Importance{Score: *correction.Importance}
	}
	return memory, nil
}

// maskOf returns the mask of fields. Without fields it is nil, and the server takes the fields that are
// set.
func maskOf(fields []string) *fieldmaskpb.FieldMask {
	if len(fields) == 0 {
		return nil
	}
	return &fieldmaskpb.FieldMask{Paths: fields}
}

// userMemoryTo converts to a memory. Nil stays nil.
func userMemoryTo(memory *memoryv1.UserMemory) *UserMemory {
	if memory == nil {
		return nil
	}
	return &UserMemory{
		ID:              memory.GetId(),
		Content:         memory.GetContent(),
		Category:        enumTo[MemoryCategory](memory.GetCategory(), "MEMORY_CATEGORY_"),
		Reasoning:       memory.GetReasoning(),
		Importance:      importanceTo(memory.GetImportance()),
		Version:         memory.GetVersion(),
		Status:          enumTo[MemoryStatus](memory.GetStatus(), "MEMORY_STATUS_"),
		ValidFromTime:   timeTo(memory.GetValidFromTime()),
		ValidUntilTime:  timeTo(memory.GetValidUntilTime()),
		SupersededBy:    memory.GetSupersededBy(),
		Supersedes:      memory.GetSupersedes(),
		OriginalContent: memory.GetOriginalContent(),
		Source:          sourceTo(memory.GetSource()),
		CreateTime:      timeTo(memory.GetCreateTime()),
		UpdateTime:      timeTo(memory.GetUpdateTime()),
		ExpireTime:      timeTo(memory.GetExpireTime()),
		Labels:          memory.GetLabels(),
		Metadata:        structTo(memory.GetMetadata()),
		Revision:        memory.GetRevision(),
		Provenance:      provenanceTo(memory.GetProvenance()),
	}
}

func sourceTo(source *memoryv1.MemorySource) MemorySource {
	return MemorySource{
		SessionID: source.GetSessionId(),
		ItemIDs:   source.GetItemIds(),
		Quote:     source.GetQuote(),
		Actor:     source.GetActor(),
		Origin:    enumTo[MemoryOrigin](source.GetOrigin(), "MEMORY_ORIGIN_"),
		MemoryIDs: source.GetMemoryIds(),
		Model:     source.GetModel(),
	}
}

func importanceTo(importance *memoryv1.Importance) Importance {
	return Importance{
		Base:         importance.GetBase(),
		Boosts:       each(importance.GetBoosts(), adjustmentTo),
		Reductions:   each(importance.GetReductions(), adjustmentTo),
		Score:        importance.GetScore(),
		DecayFactor:  importance.GetDecayFactor(),
		CurrentScore: importance.GetCurrentScore(),
		DecidedBy:    decidedByTo(importance.GetDecidedBy()),
	}
}

func adjustmentTo(adjustment *memoryv1.ImportanceAdjustment) ImportanceAdjustment {
	return ImportanceAdjustment{
		Name: adjustment.GetName(), Amount: adjustment.GetAmount(), Reason: adjustment.GetReason(),
	}
}

func memoryResultTo(result *memoryv1.MemoryResult) MemoryResult {
	return MemoryResult{
		Memory:      userMemoryTo(result.GetMemory()),
		Score:       result.GetScore(),
		Explanation: explanationTo(result.GetExplanation()),
	}
}

func outcomeTo(outcome memoryv1.MemoryOutcome) MemoryOutcome {
	return enumTo[MemoryOutcome](outcome, "MEMORY_OUTCOME_")
}

func extractedTo(result *memoryv1.ExtractedMemory) ExtractedMemory {
	return ExtractedMemory{
		Outcome:    outcomeTo(result.GetOutcome()),
		Memory:     userMemoryTo(result.GetMemory()),
		Existing:   userMemoryTo(result.GetExisting()),
		Superseded: each(result.GetSuperseded(), userMemoryTo),
		Similarity: result.Similarity,
		DecidedBy:  decidedByTo(result.GetDecidedBy()),
		Reason:     result.GetReason(),
		Confidence: result.Confidence,
	}
}

func consolidationTo(group *memoryv1.Consolidation) Consolidation {
	return Consolidation{
		Action:     enumTo[ConsolidationAction](group.GetAction(), "CONSOLIDATION_ACTION_"),
		Sources:    each(group.GetSources(), userMemoryTo),
		Memory:     userMemoryTo(group.GetMemory()),
		Applied:    group.GetApplied(),
		Similarity: group.GetSimilarity(),
		DecidedBy:  decidedByTo(group.GetDecidedBy()),
		Reason:     group.GetReason(),
	}
}
