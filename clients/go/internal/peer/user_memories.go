package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

var userMemoryAdapters = map[string]adapter{
	"UserMemoryService/SaveMemory":           saveMemory,
	"UserMemoryService/SearchMemories":       searchMemories,
	"UserMemoryService/ListMemories":         listMemories,
	"UserMemoryService/UpdateMemory":         updateMemory,
	"UserMemoryService/DeleteMemory":         deleteMemory,
	"UserMemoryService/GetPreloadedMemories": getPreloadedMemories,
	"UserMemoryService/ExtractMemories":      extractMemories,
	"UserMemoryService/ConsolidateMemories":  consolidateMemories,
}

func category(text string) memory.MemoryCategory { return memory.MemoryCategory(text) }

func (f *fields) categories() []memory.MemoryCategory {
	return each(f.enums("categories"), category)
}

func (f *fields) decideBy() memory.DecidedBy { return memory.DecidedBy(f.enum("decide_by")) }

func (f *fields) onContradiction() memory.OnContradiction {
	return memory.OnContradiction(f.enum("on_contradiction"))
}

// source reads the source of a fact, without the fields that only the server sets. Nil: not given.
func (f *fields) source() *memory.MemorySource {
	if f == nil {
		return nil
	}
	return &memory.MemorySource{
		SessionID: f.text("session_id"),
		ItemIDs:   f.texts("item_ids"),
		Quote:     f.text("quote"),
		Actor:     f.text("actor"),
	}
}

func saveMemory(client *memory.Client, in *fields) call {
	client, write := scoped(client, in), writeOptions(in)
	content, reasoning := in.text("content"), in.text("reasoning")
	category := memory.MemoryCategory(in.enum("category"))
	options := &memory.SaveMemoryOptions{
		Source:          in.child("source").source(),
		ExplicitRequest: in.flag("explicit_request"),
		OnContradiction: in.onContradiction(),
		ValidFromTime:   in.time("valid_from_time"),
		TTL:             in.duration("ttl"),
		Labels:          in.labels("labels"),
		Metadata:        in.object("metadata"),
		KeepWording:     in.flag("keep_wording"),
		DecideBy:        in.decideBy(),
	}
	return func(ctx context.Context) (proto.Message, error) {
		saved, err := client.SaveMemory(ctx, content, category, reasoning, options, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.SaveMemoryResponse{
			Outcome:            enumOf[memoryv1.MemoryOutcome](saved.Outcome),
			Memory:             userMemoryOf(saved.Memory),
			Existing:           userMemoryOf(saved.Existing),
			Superseded:         each(saved.Superseded, userMemoryOf),
			Message:            saved.Message,
			Similarity:         saved.Similarity,
			DuplicateThreshold: saved.DuplicateThreshold,
			DecidedBy:          enumOf[memoryv1.DecidedBy](saved.DecidedBy),
			Reason:             saved.Reason,
			RephrasedBy:        enumOf[memoryv1.DecidedBy](saved.RephrasedBy),
			Failures:           failuresOf(saved.Failures),
			LlmUsage:           usageOf(saved.LLMUsage),
			Degraded:           degradedOf(saved.Degraded),
			Revision:           saved.Revision,
		}, nil
	}
}

func searchMemories(client *memory.Client, in *fields) call {
	client, query := scoped(client, in), in.text("query")
	options := &memory.SearchMemoriesOptions{
		Categories:     in.categories(),
		Limit:          in.optionalNumber("limit"),
		AsOfTime:       in.time("as_of_time"),
		IncludeHistory: in.flag("include_history"),
		MinImportance:  in.optionalFloat("min_importance"),
		Labels:         in.labels("labels"),
		SessionID:      in.text("session_id"),
		MinScore:       in.optionalFloat("min_score"),
		Mode:           memory.RetrieveMode(in.enum("mode")),
		MaxTokens:      in.optionalNumber("max_tokens"),
		Explain:        in.flag("explain"),
		PageSize:       in.number("page_size"),
		MinTrust:       in.optionalFloat("min_trust"),
		Sources:        in.sources(),
	}
	return func(ctx context.Context) (proto.Message, error) {
		found, err := client.SearchMemories(ctx, query, options)
		if err != nil {
			return nil, err
		}
		return &memoryv1.SearchMemoriesResponse{
			Results: each(found.Results, func(result memory.MemoryResult) *memoryv1.MemoryResult {
				return &memoryv1.MemoryResult{
					Memory:      userMemoryOf(result.Memory),
					Score:       result.Score,
					Explanation: explanationOf(result.Explanation),
				}
			}),
			Degraded: degradedOf(found.Degraded),
			Revision: found.Revision,
		}, nil
	}
}

func listMemories(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	options := &memory.ListMemoriesOptions{
		Categories:     in.categories(),
		IDs:            in.texts("ids"),
		AsOfTime:       in.time("as_of_time"),
		IncludeHistory: in.flag("include_history"),
		MinImportance:  in.optionalFloat("min_importance"),
		Labels:         in.labels("labels"),
		SessionID:      in.text("session_id"),
		StartTime:      in.time("start_time"),
		EndTime:        in.time("end_time"),
		NewestFirst:    in.flag("newest_first"),
		PageSize:       in.number("page_size"),
		MinTrust:       in.optionalFloat("min_trust"),
		Sources:        in.sources(),
	}
	return func(ctx context.Context) (proto.Message, error) {
		memories, err := collected(client.ListMemories(ctx, options), userMemoryOf)
		return &memoryv1.ListMemoriesResponse{Memories: memories}, err
	}
}

func updateMemory(client *memory.Client, in *fields) call {
	client, write := scoped(client, in), writeOptions(in)
	in.required("memory")
	id, correction := in.child("memory").correction()
	correction.KeepWording, correction.DecideBy = in.flag("keep_wording"), in.decideBy()
	return func(ctx context.Context) (proto.Message, error) {
		updated, err := client.UpdateMemory(ctx, id, correction, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.UpdateMemoryResponse{
			Outcome:     enumOf[memoryv1.MemoryOutcome](updated.Outcome),
			Memory:      userMemoryOf(updated.Memory),
			Existing:    userMemoryOf(updated.Existing),
			DecidedBy:   enumOf[memoryv1.DecidedBy](updated.DecidedBy),
			RephrasedBy: enumOf[memoryv1.DecidedBy](updated.RephrasedBy),
			Failures:    failuresOf(updated.Failures),
			LlmUsage:    usageOf(updated.LLMUsage),
			Degraded:    degradedOf(updated.Degraded),
			Revision:    updated.Revision,
		}, nil
	}
}

// correction reads the new values of a memory, and its id.
func (f *fields) correction() (string, memory.MemoryCorrection) {
	if f == nil {
		return "", memory.MemoryCorrection{}
	}
	correction := memory.MemoryCorrection{
		Content:        f.text("content"),
		Category:       memory.MemoryCategory(f.enum("category")),
		Reasoning:      f.text("reasoning"),
		ValidFromTime:  f.time("valid_from_time"),
		ValidUntilTime: f.time("valid_until_time"),
		ExpireTime:     f.time("expire_time"),
		TTL:            f.duration("ttl"),
		Labels:         f.labels("labels"),
		Metadata:       f.object("metadata"),
	}
	if importance := f.child("importance"); importance != nil {
		correction.Importance = memory.Ptr(importance.get("score").Float())
	}
	return f.text("id"), correction
}

func deleteMemory(client *memory.Client, in *fields) call {
	client, id, write := scoped(client, in), in.text("id"), writeOptions(in)
	options := &memory.DeleteMemoryOptions{IncludeHistory: in.flag("include_history")}
	if in.flag("keep_derived") {
		write = append(write, memory.WithKeepDerived())
	}
	return func(ctx context.Context) (proto.Message, error) {
		removed, err := client.DeleteMemory(ctx, id, options, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.DeleteMemoryResponse{
			RemovedCount: removed.Count, Revision: removed.Revision, DerivedCount: removed.DerivedCount,
		}, nil
	}
}

func getPreloadedMemories(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	options := &memory.PreloadedMemoriesOptions{
		MaxTokens:     in.optionalNumber("max_tokens"),
		Categories:    in.categories(),
		Limit:         in.optionalNumber("limit"),
		MinImportance: in.optionalFloat("min_importance"),
		AsOfTime:      in.time("as_of_time"),
		Labels:        in.labels("labels"),
		MinTrust:      in.optionalFloat("min_trust"),
		Sources:       in.sources(),
		IfNotRevision: in.optionalInteger("if_not_revision"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		preloaded, err := client.GetPreloadedMemories(ctx, options)
		if err != nil {
			return nil, err
		}
		return &memoryv1.GetPreloadedMemoriesResponse{
			Memories:     each(preloaded.Memories, userMemoryOf),
			Text:         preloaded.Text,
			TokenCount:   int32(preloaded.TokenCount),
			OmittedCount: preloaded.OmittedCount,
			Revision:     preloaded.Revision,
			Unchanged:    preloaded.Unchanged,
		}, nil
	}
}
