package memory

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// WriteOption sets an option of a write. Every method documents the options it takes and refuses
// others with [ErrInvalidArgument], because an ignored option could lose a write.
type WriteOption interface {
	setWrite(*writeSettings)
}

type writeOption func(*writeSettings)

func (o writeOption) setWrite(s *writeSettings) { o(s) }

type writeSettings struct {
	requestID        string
	expectedRevision *int64
	expectedVersion  *int64
	ttl              *time.Duration
	description      *string
	fields           []string
	onDuplicate      OnDuplicate
	dryRun           bool
	keepDerived      bool
	derivedCount     *int64
	expectedSHA256   string
	recursive        bool

	given []writeOptionName
}

type writeOptionName string

const (
	requestIDOption        writeOptionName = "WithRequestID"
	expectedRevisionOption writeOptionName = "WithExpectedRevision"
	expectedVersionOption  writeOptionName = "WithExpectedVersion"
	ttlOption              writeOptionName = "WithTTL"
	descriptionOption      writeOptionName = "WithDescription"
	fieldsOption           writeOptionName = "WithFields"
	onDuplicateOption      writeOptionName = "WithOnDuplicate"
	dryRunOption           writeOptionName = "WithDryRun"
	keepDerivedOption      writeOptionName = "WithKeepDerived"
	derivedCountOption     writeOptionName = "WithDerivedCount"
	expectedSHA256Option   writeOptionName = "WithExpectedSHA256"
	recursiveOption        writeOptionName = "WithRecursive"
)

// WithRequestID sets the id of a write, which makes retries safe: a write with the same id and contents
// is applied only once within 24 hours. At most 64 characters. By default every call gets a new id.
// Every write takes it.
func WithRequestID(id string) WriteOption {
	return writeOption(func(s *writeSettings) {
		s.given = append(s.given, requestIDOption)
		s.requestID = id
	})
}

// WithExpectedRevision makes a write of an item conditional: it happens only if this is the item's
// revision, and otherwise returns [ErrConflict].
func WithExpectedRevision(revision int64) WriteOption {
	return writeOption(func(s *writeSettings) {
		s.given = append(s.given, expectedRevisionOption)
		s.expectedRevision = &revision
	})
}

// WithExpectedVersion makes a write of a state, fact, document, session or file conditional: it happens
// only if this is its version, and otherwise returns [ErrConflict]. 0: only if it does not exist.
func WithExpectedVersion(version int64) WriteOption {
	return writeOption(func(s *writeSettings) {
		s.given = append(s.given, expectedVersionOption)
		s.expectedVersion = &version
	})
}

// WithTTL sets the time until a state expires. Without it: it never does.
func WithTTL(ttl time.Duration) WriteOption {
	return writeOption(func(s *writeSettings) {
		s.given = append(s.given, ttlOption)
		s.ttl = &ttl
	})
}

// WithDescription sets the purpose of a state. Without it, the current description stays.
func WithDescription(description string) WriteOption {
	return writeOption(func(s *writeSettings) {
		s.given = append(s.given, descriptionOption)
		s.description = &description
	})
}

// WithFields names the fields that an update changes, such as "labels"; empty ones are cleared. "*": all.
// Without it, an update changes the fields that are set.
func WithFields(names ...string) WriteOption {
	return writeOption(func(s *writeSettings) {
		s.given = append(s.given, fieldsOption)
		s.fields = append(s.fields, names...)
	})
}

// WithDryRun makes [Client.DeleteWhere] count the items that match, without derived ones, and delete nothing.
func WithDryRun() WriteOption {
	return writeOption(func(s *writeSettings) {
		s.given = append(s.given, dryRunOption)
		s.dryRun = true
	})
}

// WithExpectedSHA256 makes a write of a file conditional: it happens only if its content has this SHA-256,
// in hexadecimal, and otherwise returns [ErrConflict].
func WithExpectedSHA256(digest string) WriteOption {
	return writeOption(func(s *writeSettings) {
		s.given = append(s.given, expectedSHA256Option)
		s.expectedSHA256 = digest
	})
}

// WithRecursive makes [Client.DeleteFile] delete a folder with everything below it.
func WithRecursive() WriteOption {
	return writeOption(func(s *writeSettings) {
		s.given = append(s.given, recursiveOption)
		s.recursive = true
	})
}

// WithDerivedCount makes [Client.Delete], [Client.DeleteWhere] and [Client.DeleteSession] set count to the
// number of further items that they removed because they were made only from the others.
func WithDerivedCount(count *int64) WriteOption {
	return writeOption(func(s *writeSettings) {
		s.given = append(s.given, derivedCountOption)
		s.derivedCount = count
	})
}

// WithKeepDerived makes [Client.Delete], [Client.DeleteSession], [Client.DeleteMemory] and
// [Client.DeleteDocument] keep what was made only from the items.
func WithKeepDerived() WriteOption {
	return writeOption(func(s *writeSettings) {
		s.given = append(s.given, keepDerivedOption)
		s.keepDerived = true
	})
}

// writeSettingsFrom applies the options of a write: a request id, or those in accepted.
func writeSettingsFrom(options []WriteOption, accepted ...writeOptionName) (*writeSettings, error) {
	settings := &writeSettings{}
	for _, option := range options {
		if option != nil {
			option.setWrite(settings)
		}
	}
	for _, name := range settings.given {
		if name != requestIDOption && !slices.Contains(accepted, name) {
			field := snakeCase(strings.TrimPrefix(string(name), "With"))
			return nil, invalidArgument(field, fmt.Sprintf("this write takes no %s", name))
		}
	}
	if settings.derivedCount == nil {
		settings.derivedCount = new(int64)
	}
	*settings.derivedCount = 0
	if settings.requestID == "" {
		settings.requestID = newUUID()
	}
	return settings, nil
}
