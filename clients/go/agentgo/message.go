package agentgo

import (
	"slices"
	"time"

	agentllms "github.com/oopslink/agent-go/pkg/support/llms"

	"github.com/memory-service/memory-service/clients/go/llms"
)

var agentRoles = []agentllms.MessageRole{
	agentllms.MessageRoleSystem,
	agentllms.MessageRoleUser,
	agentllms.MessageRoleAssistant,
	agentllms.MessageRoleTool,
}

// message returns a message in the server's form, and notes what that cannot represent.
func (n *note) message(message *agentllms.Message) (*llms.Message, error) {
	kept := &llms.Message{
		MessageId: n.name(&n.MessageID, message.MessageId),
		Creator:   llms.Creator{Role: n.role(message.Creator.Role)},
		Timestamp: message.Timestamp,
	}
	if name := message.Creator.Name; name != nil {
		plain := n.name(&n.Name, *name)
		kept.Creator.Name = &plain
	}
	if model := message.Model; model != (agentllms.ModelId{}) {
		kept.Model = &llms.Model{
			Provider: n.name(&n.Provider, string(model.Provider)), ID: n.name(&n.Model, model.ID),
		}
	}
	var err error
	if n.Timestamp, err = timeNote(message.Timestamp); err != nil {
		return nil, err
	}
	n.EmptyParts = message.Parts != nil && len(message.Parts) == 0
	for index, part := range message.Parts {
		piece, err := n.part(index, part)
		if err != nil {
			return nil, err
		}
		kept.Parts = append(kept.Parts, piece)
	}
	return kept, nil
}

// role returns a role that the server knows.
func (n *note) role(role agentllms.MessageRole) llms.Role {
	if slices.Contains(agentRoles, role) {
		return llms.Role(role)
	}
	other := string(role)
	n.Role = &other
	return llms.RoleUser
}

// name returns a name unchanged if the server accepts it; otherwise it notes the name and returns none.
func (n *note) name(place **string, name string) string {
	if isName(name, nameBytesMax) {
		return name
	}
	*place = &name
	return ""
}

// part returns a part of a message in the server's form, packed if necessary.
func (n *note) part(index int, part agentllms.Part) (llms.Part, error) {
	plain, err := plainPart(part)
	if err != nil || plain != nil {
		return plain, err
	}
	if n.Packed == nil {
		n.Packed = map[int]agentllms.PartType{}
	}
	n.Packed[index] = part.Type()
	return pack(part)
}

// agentMessage returns the stored message. A message of another client without a time gets its item's time.
func (n *note) agentMessage(kept *llms.Message, createdAt time.Time) *agentllms.Message {
	message := &agentllms.Message{
		MessageId: noted(kept.MessageId, n.MessageID),
		Creator:   agentllms.MessageCreator{Role: noted(agentllms.MessageRole(kept.Creator.Role), n.Role)},
		Timestamp: notedTime(kept.Timestamp, n.Timestamp),
	}
	if name := kept.Creator.Name; name != nil {
		whole := noted(*name, n.Name)
		message.Creator.Name = &whole
	}
	if model := kept.Model; model != nil {
		message.Model = agentllms.ModelId{
			Provider: noted(agentllms.ModelProvider(model.Provider), n.Provider), ID: noted(model.ID, n.Model),
		}
	}
	if message.Timestamp.IsZero() && n.Timestamp == "" {
		message.Timestamp = createdAt
	}
	for index, part := range kept.Parts {
		if piece := n.agentPart(index, part); piece != nil {
			message.Parts = append(message.Parts, piece)
		}
	}
	if message.Parts == nil && n.EmptyParts {
		message.Parts = []agentllms.Part{}
	}
	return message
}

// noted returns the noted value, if there is one, in place of the server's.
func noted[S ~string](kept S, note *string) S {
	if note == nil {
		return kept
	}
	return S(*note)
}

func (n *note) agentPart(index int, part llms.Part) agentllms.Part {
	kind, packed := n.Packed[index]
	if file, ok := part.(*llms.BinaryPart); ok && packed {
		if whole, err := unpack(kind, file.Content); err == nil {
			return whole
		} // Otherwise another client has changed the item since, and only the file is left.
	}
	return agentPart(part)
}
