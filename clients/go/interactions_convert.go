package memory

import "github.com/memory-service/memory-service/clients/go/internal/memoryv1"

// originalMessageFrom converts the contents of a message. Nil stays unset.
func originalMessageFrom(original *OriginalMessage) *memoryv1.OriginalMessage {
	if original == nil {
		return nil
	}
	return &memoryv1.OriginalMessage{
		Sender: original.Sender, Content: original.Content, CreateTime: timeFrom(original.CreateTime),
	}
}

// originalMessageTo converts the contents of a message. Nil stays nil.
func originalMessageTo(original *memoryv1.OriginalMessage) *OriginalMessage {
	if original == nil {
		return nil
	}
	return &OriginalMessage{
		Content:    original.GetContent(),
		Sender:     original.GetSender(),
		CreateTime: timeTo(original.GetCreateTime()),
		Provenance: provenanceTo(original.GetProvenance()),
	}
}

// stored has the fields common to the responses to a write.
type stored interface {
	GetInteraction() *memoryv1.Interaction
	GetDegraded() []*memoryv1.Degradation
}

// storedTo converts the response to a write, and passes on its error.
func storedTo(response stored, err error) (*Interaction, error) {
	if err != nil {
		return nil, err
	}
	interaction := interactionTo(response.GetInteraction())
	interaction.Degraded = degradedTo(response.GetDegraded())
	return interaction, nil
}

func interactionTo(interaction *memoryv1.Interaction) *Interaction {
	return &Interaction{
		ID:              interaction.GetId(),
		Kind:            enumTo[InteractionKind](interaction.GetKind(), "INTERACTION_KIND_"),
		Content:         interaction.GetContent(),
		Sender:          interaction.GetSender(),
		SessionID:       interaction.GetSessionId(),
		InResponseTo:    interaction.GetInResponseTo(),
		OriginalMessage: originalMessageTo(interaction.GetOriginalMessage()),
		InteractionIDs:  interaction.GetInteractionIds(),
		CreateTime:      timeTo(interaction.GetCreateTime()),
		UpdateTime:      timeTo(interaction.GetUpdateTime()),
		ExpireTime:      timeTo(interaction.GetExpireTime()),
		Labels:          interaction.GetLabels(),
		Metadata:        structTo(interaction.GetMetadata()),
		Revision:        interaction.GetRevision(),
		Provenance:      provenanceTo(interaction.GetProvenance()),
	}
}

func contextResultTo(result *memoryv1.ContextResult) ContextResult {
	return ContextResult{
		Interaction: interactionTo(result.GetInteraction()),
		Text:        result.GetText(),
		Score:       result.GetScore(),
		Explanation: explanationTo(result.GetExplanation()),
	}
}

func pairTo(pair *memoryv1.InteractionPair) InteractionPair {
	return InteractionPair{
		Message:       interactionTo(pair.GetMessage()),
		Responses:     each(pair.GetResponses(), interactionTo),
		ResponseCount: int(pair.GetResponseCount()),
	}
}
