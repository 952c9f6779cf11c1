package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

var interactionAdapters = map[string]adapter{
	"InteractionService/StoreInteraction":         storeInteraction,
	"InteractionService/StoreResponse":            storeResponse,
	"InteractionService/StoreReflection":          storeReflection,
	"InteractionService/RetrieveRelevantContext":  retrieveRelevantContext,
	"InteractionService/RetrieveLastInteractions": retrieveLastInteractions,
}

func storeInteraction(client *memory.Client, in *fields) call {
	client, write := scoped(client, in), writeOptions(in)
	sender, content := in.text("sender"), in.text("content")
	options := &memory.StoreInteractionOptions{
		SessionID:  in.text("session_id"),
		CreateTime: in.time("create_time"),
		ID:         in.text("id"),
		Labels:     in.labels("labels"),
		Metadata:   in.object("metadata"),
		TTL:        in.duration("ttl"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		stored, err := client.StoreInteraction(ctx, sender, content, options, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.StoreInteractionResponse{
			Interaction: interactionOf(stored),
			Revision:    stored.Revision,
			Degraded:    degradedOf(stored.Degraded),
		}, nil
	}
}

func storeResponse(client *memory.Client, in *fields) call {
	client, content, write := scoped(client, in), in.text("content"), writeOptions(in)
	options := &memory.StoreResponseOptions{
		InResponseTo:    in.text("in_response_to"),
		OriginalMessage: in.child("original_message").originalMessage(),
		AllowMissing:    in.flag("allow_missing"),
		Sender:          in.text("sender"),
		SessionID:       in.text("session_id"),
		CreateTime:      in.time("create_time"),
		ID:              in.text("id"),
		Labels:          in.labels("labels"),
		Metadata:        in.object("metadata"),
		TTL:             in.duration("ttl"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		stored, err := client.StoreResponse(ctx, content, options, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.StoreResponseResponse{
			Interaction: interactionOf(stored),
			Revision:    stored.Revision,
			Degraded:    degradedOf(stored.Degraded),
		}, nil
	}
}

// originalMessage reads the contents of a message. Nil: not given.
func (f *fields) originalMessage() *memory.OriginalMessage {
	if f == nil {
		return nil
	}
	return &memory.OriginalMessage{
		Content: f.text("content"), Sender: f.text("sender"), CreateTime: f.time("create_time"),
	}
}

func storeReflection(client *memory.Client, in *fields) call {
	client, content, write := scoped(client, in), in.text("content"), writeOptions(in)
	options := &memory.StoreReflectionOptions{
		InteractionIDs: in.texts("interaction_ids"),
		Sender:         in.text("sender"),
		SessionID:      in.text("session_id"),
		CreateTime:     in.time("create_time"),
		ID:             in.text("id"),
		Labels:         in.labels("labels"),
		Metadata:       in.object("metadata"),
		TTL:            in.duration("ttl"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		stored, err := client.StoreReflection(ctx, content, options, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.StoreReflectionResponse{
			Interaction: interactionOf(stored),
			Revision:    stored.Revision,
			Degraded:    degradedOf(stored.Degraded),
		}, nil
	}
}

func retrieveRelevantContext(client *memory.Client, in *fields) call {
	client, query := scoped(client, in), in.text("query")
	options := &memory.RelevantContextOptions{
		InteractionLimit: in.optionalNumber("interaction_limit"),
		ReflectionLimit:  in.optionalNumber("reflection_limit"),
		SessionID:        in.text("session_id"),
		Sender:           in.text("sender"),
		ExcludeIDs:       in.texts("exclude_ids"),
		Labels:           in.labels("labels"),
		StartTime:        in.time("start_time"),
		EndTime:          in.time("end_time"),
		MinScore:         in.optionalFloat("min_score"),
		Mode:             memory.RetrieveMode(in.enum("mode")),
		MaxTokens:        in.optionalNumber("max_tokens"),
		Explain:          in.flag("explain"),
		MinTrust:         in.optionalFloat("min_trust"),
		Sources:          in.sources(),
	}
	return func(ctx context.Context) (proto.Message, error) {
		found, err := client.RetrieveRelevantContext(ctx, query, options)
		if err != nil {
			return nil, err
		}
		return &memoryv1.RetrieveRelevantContextResponse{
			Results: each(found.Results, func(result memory.ContextResult) *memoryv1.ContextResult {
				return &memoryv1.ContextResult{
					Interaction: interactionOf(result.Interaction),
					Text:        result.Text,
					Score:       result.Score,
					Explanation: explanationOf(result.Explanation),
				}
			}),
			TokenCount: int32(found.TokenCount),
			Degraded:   degradedOf(found.Degraded),
			Revision:   found.Revision,
		}, nil
	}
}

func retrieveLastInteractions(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	options := &memory.LastInteractionsOptions{
		Limit:     in.optionalNumber("limit"),
		SessionID: in.text("session_id"),
		Sender:    in.text("sender"),
		Labels:    in.labels("labels"),
		StartTime: in.time("start_time"),
		EndTime:   in.time("end_time"),
		PageSize:  in.number("page_size"),
		MinTrust:  in.optionalFloat("min_trust"),
		Sources:   in.sources(),
	}
	return func(ctx context.Context) (proto.Message, error) {
		last, err := client.RetrieveLastInteractions(ctx, options)
		if err != nil {
			return nil, err
		}
		return &memoryv1.RetrieveLastInteractionsResponse{
			Interactions: each(last.Interactions, func(pair memory.InteractionPair) *memoryv1.InteractionPair {
				return &memoryv1.InteractionPair{
					Message:       interactionOf(pair.Message),
					Responses:     each(pair.Responses, interactionOf),
					ResponseCount: int32(pair.ResponseCount),
				}
			}),
			Revision: last.Revision,
		}, nil
	}
}

func interactionOf(interaction *memory.Interaction) *memoryv1.Interaction {
	converted := &memoryv1.Interaction{
		Id:             interaction.ID,
		Kind:           enumOf[memoryv1.InteractionKind](interaction.Kind),
		Content:        interaction.Content,
		Sender:         interaction.Sender,
		SessionId:      interaction.SessionID,
		InResponseTo:   interaction.InResponseTo,
		InteractionIds: interaction.InteractionIDs,
		CreateTime:     timeOf(interaction.CreateTime),
		UpdateTime:     timeOf(interaction.UpdateTime),
		ExpireTime:     timeOf(interaction.ExpireTime),
		Labels:         interaction.Labels,
		Metadata:       objectOf(interaction.Metadata),
		Revision:       interaction.Revision,
		Provenance:     provenanceOf(interaction.Provenance),
	}
	if original := interaction.OriginalMessage; original != nil {
		converted.OriginalMessage = &memoryv1.OriginalMessage{
			Sender:     original.Sender,
			Content:    original.Content,
			CreateTime: timeOf(original.CreateTime),
			Provenance: provenanceOf(original.Provenance),
		}
	}
	return converted
}
