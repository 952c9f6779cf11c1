package agentgo

import (
	"encoding/json"

	agentllms "github.com/oopslink/agent-go/pkg/support/llms"
)

// noteKey is the metadata key of an item's note.
const noteKey = "agentgo"

// note has the details of an item that the server has no field for. It is stored in the item's metadata, if
// there is anything to note.
type note struct {
	// ID of the item, if the server has it under another.
	ID *string `json:"id,omitempty"`
	// Form in which the item was stored, if not plain.
	Form form `json:"form,omitempty"`
	// Silent: the item holds a message or a tool's result, but its AsMessage returns none.
	Silent bool `json:"silent,omitempty"`
	// CreatedAt of the item, if it is finer than the server's time.
	CreatedAt string `json:"created_at,omitempty"`

	// Timestamp of the message, if it is finer than the server's time.
	Timestamp string `json:"timestamp,omitempty"`
	// Role that the server does not know.
	Role *string `json:"role,omitempty"`
	// MessageID, Name, Provider and Model that the server would refuse.
	MessageID *string `json:"message_id,omitempty"`
	Name      *string `json:"name,omitempty"`
	Provider  *string `json:"provider,omitempty"`
	Model     *string `json:"model,omitempty"`
	// EmptyParts: the message's list of parts is empty, not nil.
	EmptyParts bool `json:"empty_parts,omitempty"`
	// Packed are the parts that were stored as files, by their index.
	Packed map[int]agentllms.PartType `json:"packed,omitempty"`
}

// metadata returns the note as metadata of its item. Nil: there is nothing to note.
func (n *note) metadata() (map[string]any, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil || len(fields) == 0 {
		return nil, err
	}
	return map[string]any{noteKey: fields}, nil
}

// noteOf returns the note in an item's metadata. Other values under this key were written by other
// clients and are ignored.
func noteOf(metadata map[string]any) *note {
	text, err := json.Marshal(metadata[noteKey])
	found := &note{}
	if err != nil || json.Unmarshal(text, found) != nil {
		return &note{}
	}
	return found
}
