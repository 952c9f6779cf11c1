package memory

import (
	"context"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// StoreInteraction writes a message to the agent, from a user or another sender, and returns it as
// written. Nil options are the defaults. It takes [WithRequestID].
//
// It returns [ErrAlreadyExists] if an item with its id exists.
func (c *Client) StoreInteraction(
	ctx context.Context, sender, content string, options *StoreInteractionOptions, write ...WriteOption,
) (*Interaction, error) {
	settings, err := writeSettingsFrom(write)
	if err != nil {
		return nil, err
	}
	wanted := orDefaults(options)
	metadata, err := optionalStructFrom(wanted.Metadata, "metadata")
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.interactions.StoreInteraction, &memoryv1.StoreInteractionRequest{
		Namespace:  c.namespace,
		Sender:     sender,
		Content:    content,
		CreateTime: timeFrom(wanted.CreateTime),
		SessionId:  wanted.SessionID,
		Id:         wanted.ID,
		Labels:     wanted.Labels,
		Metadata:   metadata,
		Ttl:        durationFrom(wanted.TTL),
		RequestId:  settings.requestID,
	})
	return storedTo(response, err)
}

// StoreResponse writes a response of the agent, linked to the message that the options name, and
// returns it as written. Nil options are the defaults. It takes [WithRequestID].
//
// It returns [ErrNotFound] if there is no such message, and [ErrAlreadyExists] if an item with its id
// exists.
func (c *Client) StoreResponse(
	ctx context.Context, content string, options *StoreResponseOptions, write ...WriteOption,
) (*Interaction, error) {
	settings, err := writeSettingsFrom(write)
	if err != nil {
		return nil, err
	}
	wanted := orDefaults(options)
	metadata, err := optionalStructFrom(wanted.Metadata, "metadata")
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.interactions.StoreResponse, &memoryv1.StoreResponseRequest{
		Namespace:       c.namespace,
		Content:         content,
		InResponseTo:    wanted.InResponseTo,
		OriginalMessage: originalMessageFrom(wanted.OriginalMessage),
		AllowMissing:    wanted.AllowMissing,
		Sender:          wanted.Sender,
		CreateTime:      timeFrom(wanted.CreateTime),
		SessionId:       wanted.SessionID,
		Id:              wanted.ID,
		Labels:          wanted.Labels,
		Metadata:        metadata,
		Ttl:             durationFrom(wanted.TTL),
		RequestId:       settings.requestID,
	})
	return storedTo(response, err)
}

// StoreReflection writes a thought of the agent about its own actions, and returns it as written. Nil
// options are the defaults. It takes [WithRequestID].
//
// It returns [ErrAlreadyExists] if an item with its id exists.
func (c *Client) StoreReflection(
	ctx context.Context, content string, options *StoreReflectionOptions, write ...WriteOption,
) (*Interaction, error) {
	settings, err := writeSettingsFrom(write)
	if err != nil {
		return nil, err
	}
	wanted := orDefaults(options)
	metadata, err := optionalStructFrom(wanted.Metadata, "metadata")
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.interactions.StoreReflection, &memoryv1.StoreReflectionRequest{
		Namespace:      c.namespace,
		Content:        content,
		InteractionIds: wanted.InteractionIDs,
		Sender:         wanted.Sender,
		CreateTime:     timeFrom(wanted.CreateTime),
		SessionId:      wanted.SessionID,
		Id:             wanted.ID,
		Labels:         wanted.Labels,
		Metadata:       metadata,
		Ttl:            durationFrom(wanted.TTL),
		RequestId:      settings.requestID,
	})
	return storedTo(response, err)
}

// RetrieveRelevantContext returns the messages and responses that match a text best, usually a new
// message, and then the reflections that do. Nil options are the defaults.
func (c *Client) RetrieveRelevantContext(
	ctx context.Context, query string, options *RelevantContextOptions,
) (*RelevantContext, error) {
	request, err := c.relevantContextRequest(query, orDefaults(options))
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.interactions.RetrieveRelevantContext, request)
	if err != nil {
		return nil, err
	}
	return &RelevantContext{
		Results:    each(response.GetResults(), contextResultTo),
		TokenCount: int(response.GetTokenCount()),
		Degraded:   degradedTo(response.GetDegraded()),
		Revision:   response.GetRevision(),
	}, nil
}

func (c *Client) relevantContextRequest(
	query string, options *RelevantContextOptions,
) (*memoryv1.RetrieveRelevantContextRequest, error) {
	interactionLimit, err := optionalInt32From(options.InteractionLimit, "interaction_limit")
	if err != nil {
		return nil, err
	}
	reflectionLimit, err := optionalInt32From(options.ReflectionLimit, "reflection_limit")
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
	sources, err := sourcesFrom(options.Sources, "sources")
	if err != nil {
		return nil, err
	}
	return &memoryv1.RetrieveRelevantContextRequest{
		Namespace:        c.namespace,
		Query:            query,
		InteractionLimit: interactionLimit,
		ReflectionLimit:  reflectionLimit,
		SessionId:        options.SessionID,
		Sender:           options.Sender,
		ExcludeIds:       options.ExcludeIDs,
		Labels:           options.Labels,
		StartTime:        timeFrom(options.StartTime),
		EndTime:          timeFrom(options.EndTime),
		MinScore:         options.MinScore,
		Mode:             mode,
		MaxTokens:        maxTokens,
		Explain:          options.Explain,
		MinTrust:         options.MinTrust,
		Sources:          sources,
	}, nil
}

// RetrieveLastInteractions returns the newest messages, newest first, each with its responses; 5 by
// default. Nil options are the defaults.
func (c *Client) RetrieveLastInteractions(
	ctx context.Context, options *LastInteractionsOptions,
) (*LastInteractions, error) {
	request, err := c.lastInteractionsRequest(orDefaults(options))
	if err != nil {
		return nil, err
	}
	last := &LastInteractions{}
	for {
		response, err := invoke(ctx, c, c.interactions.RetrieveLastInteractions, request)
		if err != nil {
			return nil, err
		}
		if request.PageToken == "" {
			last.Revision = response.GetRevision()
		}
		last.Interactions = append(last.Interactions, each(response.GetInteractions(), pairTo)...)
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			return last, nil
		}
	}
}

func (c *Client) lastInteractionsRequest(
	options *LastInteractionsOptions,
) (*memoryv1.RetrieveLastInteractionsRequest, error) {
	limit, err := optionalInt32From(options.Limit, "limit")
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
	return &memoryv1.RetrieveLastInteractionsRequest{
		Namespace: c.namespace,
		Limit:     limit,
		SessionId: options.SessionID,
		Sender:    options.Sender,
		Labels:    options.Labels,
		StartTime: timeFrom(options.StartTime),
		EndTime:   timeFrom(options.EndTime),
		PageSize:  pageSize,
		MinTrust:  options.MinTrust,
		Sources:   sources,
	}, nil
}
