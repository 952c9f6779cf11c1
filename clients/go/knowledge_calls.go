package memory

import (
	"context"
	"iter"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// HandleMessage checks whether a text sent in a conversation is a command to save, such as "save this".
// If so, it stores the agent's latest other message of the conversation as a document with its
// fragments, all or nothing. The text itself is not stored. Nil options are the defaults. It takes
// [WithRequestID].
//
// Metadata["feedback"] of its errors is a message for the user.
func (c *Client) HandleMessage(
	ctx context.Context, sessionID, text string, options *HandleMessageOptions, write ...WriteOption,
) (*HandledMessage, error) {
	request, err := c.handleMessageRequest(orDefaults(options), write)
	if err != nil {
		return nil, err
	}
	request.SessionId, request.Text = sessionID, text
	response, err := invoke(ctx, c, c.knowledge.HandleMessage, request)
	if err != nil {
		return nil, err
	}
	return &HandledMessage{
		Outcome:   enumTo[HandleMessageOutcome](response.GetOutcome(), "HANDLE_MESSAGE_OUTCOME_"),
		Feedback:  response.GetFeedback(),
		Command:   response.GetCommand(),
		Message:   itemTo(response.GetMessage()),
		Document:  documentTo(response.GetDocument()),
		Fragments: each(response.GetFragments(), fragmentTo),
		Degraded:  degradedTo(response.GetDegraded()),
		Revision:  response.GetRevision(),
	}, nil
}

func (c *Client) handleMessageRequest(
	options *HandleMessageOptions, write []WriteOption,
) (*memoryv1.HandleMessageRequest, error) {
	settings, err := writeSettingsFrom(write)
	if err != nil {
		return nil, err
	}
	maxRecentMessages, err := optionalInt32From(options.MaxRecentMessages, "max_recent_messages")
	if err != nil {
		return nil, err
	}
	metadata, err := optionalStructFrom(options.Metadata, "metadata")
	if err != nil {
		return nil, err
	}
	split, err := splitFrom(options.Split)
	if err != nil {
		return nil, err
	}
	return &memoryv1.HandleMessageRequest{
		Namespace:         c.namespace,
		MessageId:         options.MessageID,
		AgentName:         options.AgentName,
		Commands:          options.Commands,
		MaxRecentMessages: maxRecentMessages,
		Labels:            options.Labels,
		Metadata:          metadata,
		Split:             split,
		RequestId:         settings.requestID,
	}, nil
}

// AddDocument splits a text and stores it with its fragments, all or nothing; it returns the document as
// written, without its text. Nil options are the defaults. It takes [WithExpectedVersion], only with
// Replace, with which it returns [ErrConflict] if the document's version differs, and [WithRequestID].
//
// It returns [ErrAlreadyExists] if a document with its id exists and Replace is not set.
func (c *Client) AddDocument(
	ctx context.Context, document *Document, options *AddDocumentOptions, write ...WriteOption,
) (*Document, error) {
	settings, err := writeSettingsFrom(write, expectedVersionOption)
	if err != nil {
		return nil, err
	}
	converted, err := documentFrom(document)
	if err != nil {
		return nil, err
	}
	wanted := orDefaults(options)
	split, err := splitFrom(wanted.Split)
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.knowledge.AddDocument, &memoryv1.AddDocumentRequest{
		Namespace:       c.namespace,
		Document:        converted,
		Split:           split,
		Replace:         wanted.Replace,
		ExpectedVersion: settings.expectedVersion,
		RequestId:       settings.requestID,
	})
	if err != nil {
		return nil, err
	}
	written := documentTo(response.GetDocument())
	written.Degraded = degradedTo(response.GetDegraded())
	return written, nil
}

// GetDocument returns a document with its text and, if requested, all its fragments, which it fetches
// page by page. Nil options are the defaults.
//
// It returns [ErrNotFound] if there is no such document, and an error with [ReasonInvalidPageToken] if
// the document was replaced while its fragments were fetched: call it again.
func (c *Client) GetDocument(
	ctx context.Context, id string, options *GetDocumentOptions,
) (*LoadedDocument, error) {
	wanted := orDefaults(options)
	pageSize, err := int32From(wanted.PageSize, "page_size")
	if err != nil {
		return nil, err
	}
	request := &memoryv1.GetDocumentRequest{
		Namespace: c.namespace, Id: id, IncludeFragments: wanted.IncludeFragments, PageSize: pageSize,
	}
	loaded := &LoadedDocument{}
	for {
		response, err := invoke(ctx, c, c.knowledge.GetDocument, request)
		if err != nil {
			return nil, err
		}
		if request.PageToken == "" {
			loaded.Document, loaded.NamespaceRevision = documentTo(response.GetDocument()), response.GetRevision()
		}
		loaded.Fragments = append(loaded.Fragments, each(response.GetFragments(), fragmentTo)...)
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			return loaded, nil
		}
	}
}

// ListDocuments yields the documents without their texts, in the order in which they were first added;
// pages are fetched as needed. Nil options are the defaults.
func (c *Client) ListDocuments(
	ctx context.Context, options *ListDocumentsOptions,
) iter.Seq2[*Document, error] {
	wanted := orDefaults(options)
	return paged(func(token string) ([]*Document, string, error) {
		pageSize, err := int32From(wanted.PageSize, "page_size")
		if err != nil {
			return nil, "", err
		}
		sources, err := sourcesFrom(wanted.Sources, "sources")
		if err != nil {
			return nil, "", err
		}
		response, err := invoke(ctx, c, c.knowledge.ListDocuments, &memoryv1.ListDocumentsRequest{
			Namespace:   c.namespace,
			PageSize:    pageSize,
			PageToken:   token,
			SessionId:   wanted.SessionID,
			Labels:      wanted.Labels,
			StartTime:   timeFrom(wanted.StartTime),
			EndTime:     timeFrom(wanted.EndTime),
			NewestFirst: wanted.NewestFirst,
			MinTrust:    wanted.MinTrust,
			Sources:     sources,
		})
		return each(response.GetDocuments(), documentTo), response.GetNextPageToken(), err
	})
}

// DeleteDocument removes a document and all its fragments, and what was made only from these, from the
// records and from every index. It takes [WithExpectedVersion], with which it returns [ErrConflict] if the
// document's version differs, [WithKeepDerived] and [WithRequestID]. It returns [ErrNotFound] if there is no such document.
func (c *Client) DeleteDocument(ctx context.Context, id string, write ...WriteOption) (*RemovedDocument, error) {
	settings, err := writeSettingsFrom(write, expectedVersionOption, keepDerivedOption)
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.knowledge.DeleteDocument, &memoryv1.DeleteDocumentRequest{
		Namespace:       c.namespace,
		Id:              id,
		ExpectedVersion: settings.expectedVersion,
		KeepDerived:     settings.keepDerived,
		RequestId:       settings.requestID,
	})
	if err != nil {
		return nil, err
	}
	return &RemovedDocument{
		FragmentCount: response.GetRemovedFragmentCount(),
		Revision:      response.GetRevision(),
		DerivedCount:  response.GetDerivedCount(),
	}, nil
}

// SearchFragments returns the fragments that match a text best, best first; 5 by default. Nil options
// are the defaults.
func (c *Client) SearchFragments(
	ctx context.Context, query string, options *SearchFragmentsOptions,
) (*FragmentResults, error) {
	request, err := c.searchFragmentsRequest(query, orDefaults(options))
	if err != nil {
		return nil, err
	}
	found := &FragmentResults{}
	for {
		response, err := invoke(ctx, c, c.knowledge.SearchFragments, request)
		if err != nil {
			return nil, err
		}
		if request.PageToken == "" {
			found.Degraded, found.Revision = degradedTo(response.GetDegraded()), response.GetRevision()
		}
		found.Results = append(found.Results, each(response.GetResults(), fragmentResultTo)...)
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			return found, nil
		}
	}
}

func (c *Client) searchFragmentsRequest(
	query string, options *SearchFragmentsOptions,
) (*memoryv1.SearchFragmentsRequest, error) {
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
	return &memoryv1.SearchFragmentsRequest{
		Namespace:   c.namespace,
		Query:       query,
		Limit:       limit,
		DocumentIds: options.DocumentIDs,
		SessionId:   options.SessionID,
		Labels:      options.Labels,
		StartTime:   timeFrom(options.StartTime),
		EndTime:     timeFrom(options.EndTime),
		MinScore:    options.MinScore,
		Mode:        mode,
		MaxTokens:   maxTokens,
		Explain:     options.Explain,
		PageSize:    pageSize,
		MinTrust:    options.MinTrust,
		Sources:     sources,
	}, nil
}
