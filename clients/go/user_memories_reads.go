package memory

import (
	"context"
	"iter"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// SearchMemories returns the memories that match a text best, best first; 5 by default. Nil options are
// the defaults.
func (c *Client) SearchMemories(
	ctx context.Context, query string, options *SearchMemoriesOptions,
) (*MemoryResults, error) {
	request, err := c.searchMemoriesRequest(query, orDefaults(options))
	if err != nil {
		return nil, err
	}
	found := &MemoryResults{}
	for {
		response, err := invoke(ctx, c, c.userMemories.SearchMemories, request)
		if err != nil {
			return nil, err
		}
		if request.PageToken == "" {
			found.Degraded, found.Revision = degradedTo(response.GetDegraded()), response.GetRevision()
		}
		found.Results = append(found.Results, each(response.GetResults(), memoryResultTo)...)
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			return found, nil
		}
	}
}

func (c *Client) searchMemoriesRequest(
	query string, options *SearchMemoriesOptions,
) (*memoryv1.SearchMemoriesRequest, error) {
	categories, err := categoriesFrom(options.Categories)
	if err != nil {
		return nil, err
	}
	limit, err := optionalInt32From(options.Limit, "limit")
	if err != nil {
		return nil, err
	}
	mode, err := modeFrom(options.Mode)
	if err != nil {
		return nil, err
	}
	maxTokens, err := optionalInt32From(options.MaxTokens, "max_tokens")
	if err != nil {
		return nil, err
	}
	pageSize, err := int32From(options.PageSize, "page_size")
	if err != nil {
		return nil, err
	}
	sources, err := sourcesFrom(options.Sources, "sources")
	if err != nil {
		return nil, err
	}
	return &memoryv1.SearchMemoriesRequest{
		Namespace:      c.namespace,
		Query:          query,
		Categories:     categories,
		Limit:          limit,
		AsOfTime:       timeFrom(options.AsOfTime),
		IncludeHistory: options.IncludeHistory,
		MinImportance:  options.MinImportance,
		Labels:         options.Labels,
		SessionId:      options.SessionID,
		MinScore:       options.MinScore,
		Mode:           mode,
		MaxTokens:      maxTokens,
		Explain:        options.Explain,
		PageSize:       pageSize,
		MinTrust:       options.MinTrust,
		Sources:        sources,
	}, nil
}

// ListMemories yields the memories that hold now, in the order in which they were saved; pages are
// fetched as needed. Nil options are the defaults. With IDs it returns single memories, with
// IncludeHistory all of them.
func (c *Client) ListMemories(
	ctx context.Context, options *ListMemoriesOptions,
) iter.Seq2[*UserMemory, error] {
	return paged(func(token string) ([]*UserMemory, string, error) {
		request, err := c.listMemoriesRequest(orDefaults(options))
		if err != nil {
			return nil, "", err
		}
		request.PageToken = token
		response, err := invoke(ctx, c, c.userMemories.ListMemories, request)
		return each(response.GetMemories(), userMemoryTo), response.GetNextPageToken(), err
	})
}

func (c *Client) listMemoriesRequest(options *ListMemoriesOptions) (*memoryv1.ListMemoriesRequest, error) {
	categories, err := categoriesFrom(options.Categories)
	if err != nil {
		return nil, err
	}
	pageSize, err := int32From(options.PageSize, "page_size")
	if err != nil {
		return nil, err
	}
	sources, err := sourcesFrom(options.Sources, "sources")
	if err != nil {
		return nil, err
	}
	return &memoryv1.ListMemoriesRequest{
		Namespace:      c.namespace,
		PageSize:       pageSize,
		Categories:     categories,
		Ids:            options.IDs,
		AsOfTime:       timeFrom(options.AsOfTime),
		IncludeHistory: options.IncludeHistory,
		MinImportance:  options.MinImportance,
		Labels:         options.Labels,
		SessionId:      options.SessionID,
		StartTime:      timeFrom(options.StartTime),
		EndTime:        timeFrom(options.EndTime),
		NewestFirst:    options.NewestFirst,
		MinTrust:       options.MinTrust,
		Sources:        sources,
	}, nil
}

// GetPreloadedMemories returns the memories that belong in every system prompt, the most important
// first, and a block of text for the prompt. Nil options are the defaults.
func (c *Client) GetPreloadedMemories(
	ctx context.Context, options *PreloadedMemoriesOptions,
) (*PreloadedMemories, error) {
	request, err := c.preloadedMemoriesRequest(orDefaults(options))
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.userMemories.GetPreloadedMemories, request)
	if err != nil {
		return nil, err
	}
	return &PreloadedMemories{
		Memories:     each(response.GetMemories(), userMemoryTo),
		Text:         response.GetText(),
		TokenCount:   int(response.GetTokenCount()),
		OmittedCount: response.GetOmittedCount(),
		Revision:     response.GetRevision(),
		Unchanged:    response.GetUnchanged(),
	}, nil
}

func (c *Client) preloadedMemoriesRequest(
	options *PreloadedMemoriesOptions,
) (*memoryv1.GetPreloadedMemoriesRequest, error) {
	maxTokens, err := optionalInt32From(options.MaxTokens, "max_tokens")
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
	sources, err := sourcesFrom(options.Sources, "sources")
	if err != nil {
		return nil, err
	}
	return &memoryv1.GetPreloadedMemoriesRequest{
		Namespace:     c.namespace,
		MaxTokens:     maxTokens,
		Categories:    categories,
		Limit:         limit,
		MinImportance: options.MinImportance,
		AsOfTime:      timeFrom(options.AsOfTime),
		Labels:        options.Labels,
		MinTrust:      options.MinTrust,
		Sources:       sources,
		IfNotRevision: options.IfNotRevision,
	}, nil
}
