package agentgo

import (
	"encoding/json"

	agentllms "github.com/oopslink/agent-go/pkg/support/llms"
)

// noteKey is the key of an item's metadata under which its note stands.
const noteKey = "agentgo"

// note is what the server's own form of an item has no place for. It is kept in the item's metadata,
// and only where there is something to note.
type note struct {
	// ID of the item, where the server has it under another.
	ID *string `json:"id,omitempty"`
	// Form is how the item was stored, where that is not plain.
	Form form `json:"form,omitempty"`
	// Silent: the item holds a message or a tool's result, but its AsMessage returns none.
	Silent bool `json:"silent,omitempty"`
	// CreatedAt of the item, where it is finer than what the server keeps.
	CreatedAt string `json:"created_at,omitempty"`

	// Timestamp of the message, where it is finer than what the server keeps.
	Timestamp string `json:"timestamp,omitempty"`
	// Role that the server does not know.
	Role *string `json:"role,omitempty"`
	// MessageID, Name, Provider and Model that the server would refuse.
	MessageID *string `json:"message_id,omitempty"`
	Name      *string `json:"name,omitempty"`
	Provider  *string `json:"provider,omitempty"`
	Model     *string `json:"model,omitempty"`
	// EmptyParts: the message has a list of parts with nothing in it, rather than none.
	EmptyParts bool `json:"empty_parts,omitempty"`
	// Packed are the parts that were stored as files, by their index.
	Packed map[int]agentllms.PartType `json:"packed,omitempty"`
}

// metadata returns the metadata of an item that the note is of. Nil: there is nothing to note.
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
