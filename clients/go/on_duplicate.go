package memory

import "github.com/memory-service/memory-service/clients/go/internal/memoryv1"

// OnDuplicate says how a write handles an item or state whose id or key already exists.
type OnDuplicate string

// The choices for ids and keys that already exist. Empty means [DuplicateFail].
const (
	// Fail with [ErrAlreadyExists] for an item and [ErrConflict] for a state. Nothing is written; earlier
	// batches of an import stay written.
	DuplicateFail OnDuplicate = "fail"
	// Keep what is stored. Makes an import resumable.
	DuplicateSkip OnDuplicate = "skip"
	// Replace what is stored. An item keeps its place in the order of the namespace, and its CreateTime
	// unless the new one has one.
	DuplicateReplace OnDuplicate = "replace"
)

// DuplicateOption is an option of writes and of imports.
type DuplicateOption interface {
	WriteOption
	ImportOption
}

// WithOnDuplicate says how [Client.AddItem], [Client.BatchAdd] and [Client.ImportItems] handle ids and
// keys that already exist. Without it: [DuplicateFail].
func WithOnDuplicate(choice OnDuplicate) DuplicateOption {
	return duplicateOption(choice)
}

type duplicateOption OnDuplicate

func (o duplicateOption) setWrite(s *writeSettings) {
	s.given = append(s.given, onDuplicateOption)
	s.onDuplicate = OnDuplicate(o)
}

func (o duplicateOption) setImport(s *importSettings) {
	s.onDuplicate = OnDuplicate(o)
}

func onDuplicateFrom(choice OnDuplicate, field string) (memoryv1.OnDuplicate, error) {
	return enumFrom[memoryv1.OnDuplicate](memoryv1.OnDuplicate_value, "ON_DUPLICATE_", choice, field)
}
