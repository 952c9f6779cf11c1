package memory

import (
	"context"
	"fmt"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
	"github.com/memory-service/memory-service/clients/go/llms"
)

// SaveMemory saves a fact of 10 to 500 characters in the third person, unless it is already known;
// reasoning explains in 10 to 200 characters why it is worth remembering. By default a fact that
// contradicts a known one supersedes it, and the history keeps the known one with its end. It takes
// [WithRequestID].
//
// With DecidedByLLM it returns [ErrFailedPrecondition] if the server has no language model
// ([ReasonLLMRequired]), and [ErrUnavailable] if the model fails ([ReasonLLMUnavailable]).
func (c *Client) SaveMemory(
	ctx context.Context, content string, category MemoryCategory, reasoning string,
	options *SaveMemoryOptions, write ...WriteOption,
) (*SavedMemory, error) {
	request, err := c.saveMemoryRequest(orDefaults(options), write)
	if err != nil {
		return nil, err
	}
	if request.Category, err = categoryFrom(category, "category"); err != nil {
		return nil, err
	}
	request.Content, request.Reasoning = content, reasoning
	response, err := invoke(ctx, c, c.userMemories.SaveMemory, request)
	if err != nil {
		return nil, err
	}
	return &SavedMemory{
		Decision:           decisionTo(response, response.GetReason()),
		Outcome:            outcomeTo(response.GetOutcome()),
		Memory:             userMemoryTo(response.GetMemory()),
		Existing:           userMemoryTo(response.GetExisting()),
		Superseded:         each(response.GetSuperseded(), userMemoryTo),
		Message:            response.GetMessage(),
		Similarity:         response.Similarity,
		DuplicateThreshold: response.GetDuplicateThreshold(),
		RephrasedBy:        decidedByTo(response.GetRephrasedBy()),
	}, nil
}

func (c *Client) saveMemoryRequest(options *SaveMemoryOptions, write []WriteOption) (*memoryv1.SaveMemoryRequest, error) {
	settings, err := writeSettingsFrom(write)
	if err != nil {
		return nil, err
	}
	onContradiction, err := onContradictionFrom(options.OnContradiction)
	if err != nil {
		return nil, err
	}
	decideBy, err := decidedByFrom(options.DecideBy)
	if err != nil {
		return nil, err
	}
	metadata, err := optionalStructFrom(options.Metadata, "metadata")
	if err != nil {
		return nil, err
	}
	return &memoryv1.SaveMemoryRequest{
		Namespace:       c.namespace,
		RequestId:       settings.requestID,
		Source:          sourceFrom(options.Source),
		ExplicitRequest: options.ExplicitRequest,
		OnContradiction: onContradiction,
		ValidFromTime:   timeFrom(options.ValidFromTime),
		Ttl:             durationFrom(options.TTL),
		Labels:          options.Labels,
		Metadata:        metadata,
		KeepWording:     options.KeepWording,
		DecideBy:        decideBy,
	}, nil
}

// UpdateMemory corrects the fields of a memory that are set, or those that [WithFields] names, for the
// whole time that it holds: "content", "category", "reasoning", "importance", "valid_from_time",
// "valid_until_time", "expire_time", "ttl", "labels", "metadata". New content is put into the third
// person, embedded and rated again. For a change in the world, such as a move to another city, save a
// new fact instead.
//
// It takes [WithFields], [WithExpectedVersion], with which it returns [ErrConflict] if the memory's
// version differs, and [WithRequestID]. It returns [ErrNotFound] if there is no such memory.
func (c *Client) UpdateMemory(
	ctx context.Context, id string, correction MemoryCorrection, write ...WriteOption,
) (*UpdatedMemory, error) {
	settings, err := writeSettingsFrom(write, fieldsOption, expectedVersionOption)
	if err != nil {
		return nil, err
	}
	memory, err := correctionFrom(&correction)
	if err != nil {
		return nil, err
	}
	memory.Id = id
	decideBy, err := decidedByFrom(correction.DecideBy)
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.userMemories.UpdateMemory, &memoryv1.UpdateMemoryRequest{
		Namespace:       c.namespace,
		Memory:          memory,
		UpdateMask:      maskOf(settings.fields),
		ExpectedVersion: settings.expectedVersion,
		RequestId:       settings.requestID,
		KeepWording:     correction.KeepWording,
		DecideBy:        decideBy,
	})
	if err != nil {
		return nil, err
	}
	return &UpdatedMemory{
		Decision:    decisionTo(response, ""),
		Outcome:     outcomeTo(response.GetOutcome()),
		Memory:      userMemoryTo(response.GetMemory()),
		Existing:    userMemoryTo(response.GetExisting()),
		RephrasedBy: decidedByTo(response.GetRephrasedBy()),
	}, nil
}

// DeleteMemory removes a memory, and what was made only from it, from the records and from every index. It
// takes [WithExpectedVersion], with which it returns [ErrConflict] if the memory's version differs,
// [WithKeepDerived] and [WithRequestID]. It returns [ErrNotFound] if there is no such memory.
func (c *Client) DeleteMemory(
	ctx context.Context, id string, options *DeleteMemoryOptions, write ...WriteOption,
) (*RemovedMemories, error) {
	settings, err := writeSettingsFrom(write, expectedVersionOption, keepDerivedOption)
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.userMemories.DeleteMemory, &memoryv1.DeleteMemoryRequest{
		Namespace:       c.namespace,
		Id:              id,
		ExpectedVersion: settings.expectedVersion,
		IncludeHistory:  orDefaults(options).IncludeHistory,
		KeepDerived:     settings.keepDerived,
		RequestId:       settings.requestID,
	})
	if err != nil {
		return nil, err
	}
	return &RemovedMemories{
		Count:        response.GetRemovedCount(),
		Revision:     response.GetRevision(),
		DerivedCount: response.GetDerivedCount(),
	}, nil
}

// ExtractMemories finds facts about the user in messages or in the items of a session, and saves them
// like [Client.SaveMemory]. The messages, at most 200, are not stored; without any, the items of
// SessionID in the options are examined. It takes [WithRequestID].
//
// With DecidedByLLM it returns [ErrFailedPrecondition] if the server has no language model, and
// [ErrUnavailable] if the model fails.
func (c *Client) ExtractMemories(
	ctx context.Context, messages []*llms.Message, options *ExtractMemoriesOptions, write ...WriteOption,
) (*Extraction, error) {
	request, err := c.extractMemoriesRequest(orDefaults(options), write)
	if err != nil {
		return nil, err
	}
	for index, message := range messages {
		converted, err := messageFrom(message, fmt.Sprintf("messages[%d]", index))
		if err != nil {
			return nil, err
		}
		request.Messages = append(request.Messages, converted)
	}
	response, err := invoke(ctx, c, c.userMemories.ExtractMemories, request)
	if err != nil {
		return nil, err
	}
	return &Extraction{
		Decision:         decisionTo(response, response.GetReason()),
		Results:          each(response.GetResults(), extractedTo),
		ExaminedCount:    int(response.GetExaminedCount()),
		ExaminedRevision: response.GetExaminedRevision(),
		More:             response.GetMore(),
	}, nil
}

func (c *Client) extractMemoriesRequest(
	options *ExtractMemoriesOptions, write []WriteOption,
) (*memoryv1.ExtractMemoriesRequest, error) {
	settings, err := writeSettingsFrom(write)
	if err != nil {
		return nil, err
	}
	limit, err := optionalInt32From(options.Limit, "limit")
	if err != nil {
		return nil, err
	}
	categories, err := categoriesFrom(options.Categories)
	if err != nil {
		return nil, err
	}
	onContradiction, err := onContradictionFrom(options.OnContradiction)
	if err != nil {
		return nil, err
	}
	decideBy, err := decidedByFrom(options.DecideBy)
	if err != nil {
		return nil, err
	}
	return &memoryv1.ExtractMemoriesRequest{
		Namespace:         c.namespace,
		SessionId:         options.SessionID,
		AfterRevision:     options.AfterRevision,
		Limit:             limit,
		RecalledMemoryIds: options.RecalledMemoryIDs,
		Categories:        categories,
		DryRun:            options.DryRun,
		OnContradiction:   onContradiction,
		DecideBy:          decideBy,
		Actor:             options.Actor,
		Labels:            options.Labels,
		RequestId:         settings.requestID,
	}, nil
}

// ConsolidateMemories merges memories that say much the same, and ends those that a later one contradicts.
// A group whose memories another call changes meanwhile is left unchanged. It takes [WithRequestID].
func (c *Client) ConsolidateMemories(
	ctx context.Context, options *ConsolidateMemoriesOptions, write ...WriteOption,
) (*Consolidations, error) {
	request, err := c.consolidateMemoriesRequest(orDefaults(options), write)
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.userMemories.ConsolidateMemories, request)
	if err != nil {
		return nil, err
	}
	return &Consolidations{
		Decision:       decisionTo(response, response.GetReason()),
		Consolidations: each(response.GetConsolidations(), consolidationTo),
		ExaminedCount:  response.GetExaminedCount(),
		More:           response.GetMore(),
	}, nil
}

func (c *Client) consolidateMemoriesRequest(
	options *ConsolidateMemoriesOptions, write []WriteOption,
) (*memoryv1.ConsolidateMemoriesRequest, error) {
	settings, err := writeSettingsFrom(write)
	if err != nil {
		return nil, err
	}
	categories, err := categoriesFrom(options.Categories)
	if err != nil {
		return nil, err
	}
	limit, err := optionalInt32From(options.Limit, "limit")
	if err != nil {
		return nil, err
	}
	decideBy, err := decidedByFrom(options.DecideBy)
	if err != nil {
		return nil, err
	}
	return &memoryv1.ConsolidateMemoriesRequest{
		Namespace:           c.namespace,
		DryRun:              options.DryRun,
		Categories:          categories,
		MemoryIds:           options.MemoryIDs,
		SimilarityThreshold: options.SimilarityThreshold,
		Limit:               limit,
		DecideBy:            decideBy,
		RequestId:           settings.requestID,
	}, nil
}
