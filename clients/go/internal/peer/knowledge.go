package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

var knowledgeAdapters = map[string]adapter{
	"KnowledgeService/HandleMessage":   handleMessage,
	"KnowledgeService/AddDocument":     addDocument,
	"KnowledgeService/GetDocument":     getDocument,
	"KnowledgeService/ListDocuments":   listDocuments,
	"KnowledgeService/DeleteDocument":  deleteDocument,
	"KnowledgeService/SearchFragments": searchFragments,
}

// split reads split options. Nil: not given.
func (f *fields) split() *memory.SplitOptions {
	if f == nil {
		return nil
	}
	return &memory.SplitOptions{
		MaxCharacters:     f.optionalNumber("max_characters"),
		OverlapCharacters: f.optionalNumber("overlap_characters"),
	}
}

func handleMessage(client *memory.Client, in *fields) call {
	client, write := scoped(client, in), writeOptions(in)
	sessionID, text := in.text("session_id"), in.text("text")
	options := &memory.HandleMessageOptions{
		MessageID:         in.text("message_id"),
		AgentName:         in.text("agent_name"),
		Commands:          in.texts("commands"),
		MaxRecentMessages: in.optionalNumber("max_recent_messages"),
		Labels:            in.labels("labels"),
		Metadata:          in.object("metadata"),
		Split:             in.child("split").split(),
	}
	return func(ctx context.Context) (proto.Message, error) {
		handled, err := client.HandleMessage(ctx, sessionID, text, options, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.HandleMessageResponse{
			Outcome:   enumOf[memoryv1.HandleMessageOutcome](handled.Outcome),
			Feedback:  handled.Feedback,
			Command:   handled.Command,
			Message:   itemOf(handled.Message),
			Document:  documentOf(handled.Document),
			Fragments: each(handled.Fragments, fragmentOf),
			Revision:  handled.Revision,
			Degraded:  degradedOf(handled.Degraded),
		}, nil
	}
}

func addDocument(client *memory.Client, in *fields) call {
	client, document, write := scoped(client, in), in.child("document").document(), writeOptions(in)
	options := &memory.AddDocumentOptions{Split: in.child("split").split(), Replace: in.flag("replace")}
	return func(ctx context.Context) (proto.Message, error) {
		added, err := client.AddDocument(ctx, document, options, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.AddDocumentResponse{
			Document: documentOf(added), Revision: added.Revision, Degraded: degradedOf(added.Degraded),
		}, nil
	}
}

// document reads a document to be added, without the fields that only the server sets. Nil: there is none.
func (f *fields) document() *memory.Document {
	if f == nil {
		return nil
	}
	return &memory.Document{
		ID:         f.text("id"),
		Text:       f.text("text"),
		Title:      f.text("title"),
		Source:     f.text("source"),
		SessionID:  f.text("session_id"),
		Labels:     f.labels("labels"),
		Metadata:   f.object("metadata"),
		CreateTime: f.time("create_time"),
		ExpireTime: f.time("expire_time"),
		TTL:        f.duration("ttl"),
	}
}

func getDocument(client *memory.Client, in *fields) call {
	client, id := scoped(client, in), in.text("id")
	options := &memory.GetDocumentOptions{
		IncludeFragments: in.flag("include_fragments"), PageSize: in.number("page_size"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		loaded, err := client.GetDocument(ctx, id, options)
		if err != nil {
			return nil, err
		}
		return &memoryv1.GetDocumentResponse{
			Document:  documentOf(loaded.Document),
			Fragments: each(loaded.Fragments, fragmentOf),
			Revision:  loaded.NamespaceRevision,
		}, nil
	}
}

func listDocuments(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	options := &memory.ListDocumentsOptions{
		SessionID:   in.text("session_id"),
		Labels:      in.labels("labels"),
		StartTime:   in.time("start_time"),
		EndTime:     in.time("end_time"),
		NewestFirst: in.flag("newest_first"),
		PageSize:    in.number("page_size"),
		MinTrust:    in.optionalFloat("min_trust"),
		Sources:     in.sources(),
	}
	return func(ctx context.Context) (proto.Message, error) {
		documents, err := collected(client.ListDocuments(ctx, options), documentOf)
		return &memoryv1.ListDocumentsResponse{Documents: documents}, err
	}
}

func deleteDocument(client *memory.Client, in *fields) call {
	client, id, write := scoped(client, in), in.text("id"), writeOptions(in)
	if in.flag("keep_derived") {
		write = append(write, memory.WithKeepDerived())
	}
	return func(ctx context.Context) (proto.Message, error) {
		removed, err := client.DeleteDocument(ctx, id, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.DeleteDocumentResponse{
			RemovedFragmentCount: removed.FragmentCount,
			Revision:             removed.Revision,
			DerivedCount:         removed.DerivedCount,
		}, nil
	}
}

func searchFragments(client *memory.Client, in *fields) call {
	client, query := scoped(client, in), in.text("query")
	options := &memory.SearchFragmentsOptions{
		Limit:       in.optionalNumber("limit"),
		DocumentIDs: in.texts("document_ids"),
		SessionID:   in.text("session_id"),
		Labels:      in.labels("labels"),
		StartTime:   in.time("start_time"),
		EndTime:     in.time("end_time"),
		MinScore:    in.optionalFloat("min_score"),
		Mode:        memory.RetrieveMode(in.enum("mode")),
		MaxTokens:   in.optionalNumber("max_tokens"),
		Explain:     in.flag("explain"),
		PageSize:    in.number("page_size"),
		MinTrust:    in.optionalFloat("min_trust"),
		Sources:     in.sources(),
	}
	return func(ctx context.Context) (proto.Message, error) {
		found, err := client.SearchFragments(ctx, query, options)
		if err != nil {
			return nil, err
		}
		return &memoryv1.SearchFragmentsResponse{
			Results: each(found.Results, func(result memory.FragmentResult) *memoryv1.FragmentResult {
				return &memoryv1.FragmentResult{
					Fragment:    fragmentOf(result.Fragment),
					Document:    documentOf(result.Document),
					Score:       result.Score,
					Explanation: explanationOf(result.Explanation),
				}
			}),
			Degraded: degradedOf(found.Degraded),
			Revision: found.Revision,
		}, nil
	}
}

func documentOf(document *memory.Document) *memoryv1.Document {
	if document == nil {
		return nil
	}
	return &memoryv1.Document{
		Id:            document.ID,
		Text:          document.Text,
		Title:         document.Title,
		Source:        document.Source,
		SourceItemId:  document.SourceItemID,
		SessionId:     document.SessionID,
		Labels:        document.Labels,
		Metadata:      objectOf(document.Metadata),
		CreateTime:    timeOf(document.CreateTime),
		UpdateTime:    timeOf(document.UpdateTime),
		ExpireTime:    timeOf(document.ExpireTime),
		Version:       document.Version,
		FragmentCount: int32(document.FragmentCount),
		SizeBytes:     document.SizeBytes,
		Preview:       document.Preview,
		Revision:      document.Revision,
		Provenance:    provenanceOf(document.Provenance),
	}
}

func fragmentOf(fragment *memory.Fragment) *memoryv1.Fragment {
	return &memoryv1.Fragment{
		Id:              fragment.ID,
		DocumentId:      fragment.DocumentID,
		DocumentVersion: fragment.DocumentVersion,
		Index:           int32(fragment.Index),
		Text:            fragment.Text,
		StartOffset:     int32(fragment.StartOffset),
		EndOffset:       int32(fragment.EndOffset),
		StartByte:       int32(fragment.StartByte),
		EndByte:         int32(fragment.EndByte),
		CreateTime:      timeOf(fragment.CreateTime),
		Provenance:      provenanceOf(fragment.Provenance),
	}
}
