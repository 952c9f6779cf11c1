package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

func extractMemories(client *memory.Client, in *fields) call {
	client, write := scoped(client, in), writeOptions(in)
	messages := each(in.childList("messages"), (*fields).chatMessage)
	options := &memory.ExtractMemoriesOptions{
		SessionID:         in.text("session_id"),
		AfterRevision:     in.integer("after_revision"),
		Limit:             in.optionalNumber("limit"),
		RecalledMemoryIDs: in.texts("recalled_memory_ids"),
		Categories:        in.categories(),
		DryRun:            in.flag("dry_run"),
		OnContradiction:   in.onContradiction(),
		DecideBy:          in.decideBy(),
		Actor:             in.text("actor"),
		Labels:            in.labels("labels"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		extraction, err := client.ExtractMemories(ctx, messages, options, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.ExtractMemoriesResponse{
			Results:          each(extraction.Results, extractedOf),
			DecidedBy:        enumOf[memoryv1.DecidedBy](extraction.DecidedBy),
			Reason:           extraction.Reason,
			ExaminedCount:    int32(extraction.ExaminedCount),
			ExaminedRevision: extraction.ExaminedRevision,
			More:             extraction.More,
			Failures:         failuresOf(extraction.Failures),
			LlmUsage:         usageOf(extraction.LLMUsage),
			Degraded:         degradedOf(extraction.Degraded),
			Revision:         extraction.Revision,
		}, nil
	}
}

func extractedOf(result memory.ExtractedMemory) *memoryv1.ExtractedMemory {
	return &memoryv1.ExtractedMemory{
		Outcome:    enumOf[memoryv1.MemoryOutcome](result.Outcome),
		Memory:     userMemoryOf(result.Memory),
		Existing:   userMemoryOf(result.Existing),
		Superseded: each(result.Superseded, userMemoryOf),
		Similarity: result.Similarity,
		DecidedBy:  enumOf[memoryv1.DecidedBy](result.DecidedBy),
		Reason:     result.Reason,
		Confidence: result.Confidence,
	}
}

func consolidateMemories(client *memory.Client, in *fields) call {
	client, write := scoped(client, in), writeOptions(in)
	options := &memory.ConsolidateMemoriesOptions{
		DryRun:              in.flag("dry_run"),
		Categories:          in.categories(),
		MemoryIDs:           in.texts("memory_ids"),
		SimilarityThreshold: in.optionalFloat("similarity_threshold"),
		Limit:               in.optionalNumber("limit"),
		DecideBy:            in.decideBy(),
	}
	return func(ctx context.Context) (proto.Message, error) {
		done, err := client.ConsolidateMemories(ctx, options, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.ConsolidateMemoriesResponse{
			Consolidations: each(done.Consolidations, consolidationOf),
			DecidedBy:      enumOf[memoryv1.DecidedBy](done.DecidedBy),
			Reason:         done.Reason,
			ExaminedCount:  done.ExaminedCount,
			More:           done.More,
			Failures:       failuresOf(done.Failures),
			LlmUsage:       usageOf(done.LLMUsage),
			Degraded:       degradedOf(done.Degraded),
			Revision:       done.Revision,
		}, nil
	}
}

func consolidationOf(group memory.Consolidation) *memoryv1.Consolidation {
	return &memoryv1.Consolidation{
		Action:     enumOf[memoryv1.ConsolidationAction](group.Action),
		Sources:    each(group.Sources, userMemoryOf),
		Memory:     userMemoryOf(group.Memory),
		Applied:    group.Applied,
		Similarity: group.Similarity,
		DecidedBy:  enumOf[memoryv1.DecidedBy](group.DecidedBy),
		Reason:     group.Reason,
	}
}

func userMemoryOf(fact *memory.UserMemory) *memoryv1.UserMemory {
	if fact == nil {
		return nil
	}
	return &memoryv1.UserMemory{
		Id:              fact.ID,
		Content:         fact.Content,
		Category:        enumOf[memoryv1.MemoryCategory](fact.Category),
		Reasoning:       fact.Reasoning,
		Importance:      importanceOf(fact.Importance),
		Version:         fact.Version,
		Status:          enumOf[memoryv1.MemoryStatus](fact.Status),
		ValidFromTime:   timeOf(fact.ValidFromTime),
		ValidUntilTime:  timeOf(fact.ValidUntilTime),
		SupersededBy:    fact.SupersededBy,
		Supersedes:      fact.Supersedes,
		OriginalContent: fact.OriginalContent,
		Source:          sourceOf(fact.Source),
		CreateTime:      timeOf(fact.CreateTime),
		UpdateTime:      timeOf(fact.UpdateTime),
		ExpireTime:      timeOf(fact.ExpireTime),
		Labels:          fact.Labels,
		Metadata:        objectOf(fact.Metadata),
		Revision:        fact.Revision,
		Provenance:      provenanceOf(fact.Provenance),
	}
}

func sourceOf(source memory.MemorySource) *memoryv1.MemorySource {
	return &memoryv1.MemorySource{
		Origin:    enumOf[memoryv1.MemoryOrigin](source.Origin),
		SessionId: source.SessionID,
		ItemIds:   source.ItemIDs,
		Quote:     source.Quote,
		Actor:     source.Actor,
		MemoryIds: source.MemoryIDs,
		Model:     source.Model,
	}
}

func importanceOf(importance memory.Importance) *memoryv1.Importance {
	return &memoryv1.Importance{
		Base:         importance.Base,
		Boosts:       each(importance.Boosts, adjustmentOf),
		Reductions:   each(importance.Reductions, adjustmentOf),
		Score:        importance.Score,
		DecayFactor:  importance.DecayFactor,
		CurrentScore: importance.CurrentScore,
		DecidedBy:    enumOf[memoryv1.DecidedBy](importance.DecidedBy),
	}
}

func adjustmentOf(adjustment memory.ImportanceAdjustment) *memoryv1.ImportanceAdjustment {
	return &memoryv1.ImportanceAdjustment{
		Name: adjustment.Name, Amount: adjustment.Amount, Reason: adjustment.Reason,
	}
}
