package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

var overseerAdapters = map[string]adapter{
	"OverseerService/CheckRelevance":     checkRelevance,
	"OverseerService/EvaluateForStorage": evaluateForStorage,
}

func checkRelevance(client *memory.Client, in *fields) call {
	client, goal := scoped(client, in), in.text("goal")
	options := &memory.CheckRelevanceOptions{
		Limit:         in.optionalNumber("limit"),
		MaxTokens:     in.optionalNumber("max_tokens"),
		Pattern:       in.text("pattern"),
		MaxCandidates: in.optionalNumber("max_candidates"),
		OmitValues:    in.flag("omit_values"),
		DecideBy:      in.decideBy(),
		Explain:       in.flag("explain"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		relevance, err := client.CheckRelevance(ctx, goal, options)
		if err != nil {
			return nil, err
		}
		return &memoryv1.CheckRelevanceResponse{
			Entries:     each(relevance.Entries, entryOf),
			DecidedBy:   enumOf[memoryv1.DecidedBy](relevance.DecidedBy),
			Reason:      relevance.Reason,
			Decisions:   each(relevance.Decisions, keyDecisionOf),
			Failures:    failuresOf(relevance.Failures),
			ContextText: relevance.ContextText,
			TokenCount:  int32(relevance.TokenCount),
			KeyCount:    relevance.KeyCount,
			LlmUsage:    usageOf(relevance.LLMUsage),
			Degraded:    degradedOf(relevance.Degraded),
			Revision:    relevance.Revision,
		}, nil
	}
}

func keyDecisionOf(decision memory.KeyDecision) *memoryv1.KeyDecision {
	return &memoryv1.KeyDecision{
		Key:         decision.Key,
		Verdict:     enumOf[memoryv1.KeyVerdict](decision.Verdict),
		DecidedBy:   enumOf[memoryv1.DecidedBy](decision.DecidedBy),
		Reason:      decision.Reason,
		Score:       decision.Score,
		Explanation: explanationOf(decision.Explanation),
	}
}

func evaluateForStorage(client *memory.Client, in *fields) call {
	client, write := scoped(client, in), writeOptions(in)
	in.required("result")
	toolName, result := in.text("tool_name"), in.value("result")
	options := &memory.EvaluateForStorageOptions{
		Goal:      in.text("goal"),
		Save:      in.flag("save"),
		Arguments: in.object("arguments"),
		IsError:   in.flag("is_error"),
		Key:       in.text("key"),
		Overwrite: in.flag("overwrite"),
		TTL:       in.duration("ttl"),
		DecideBy:  in.decideBy(),
	}
	return func(ctx context.Context) (proto.Message, error) {
		decision, err := client.EvaluateForStorage(ctx, toolName, result, options, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.EvaluateForStorageResponse{
			ShouldSave:      decision.ShouldSave,
			Key:             decision.Key,
			Reason:          decision.Reason,
			DecidedBy:       enumOf[memoryv1.DecidedBy](decision.DecidedBy),
			Saved:           decision.Saved,
			Entry:           entryOf(decision.Entry),
			Skipped:         decision.Skipped,
			Description:     decision.Description,
			ExistingVersion: decision.ExistingVersion,
			Failures:        failuresOf(decision.Failures),
			LlmUsage:        usageOf(decision.LLMUsage),
			Degraded:        degradedOf(decision.Degraded),
			Revision:        decision.Revision,
		}, nil
	}
}
