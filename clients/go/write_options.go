package memory

import (
	"fmt"
	"slices"
	"time"
)

// WriteOption changes how something is written. Every method documents the options it takes and refuses
// others with [ErrInvalidArgument], because an ignored option could lose a write.
type WriteOption func(*writeSettings)

type writeSettings struct {
	requestID        string
	expectedRevision *int64
	expectedVersion  *int64
	ttl              *time.Duration
	description      *string
	fields           []string

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
)

// WithRequestID gives a write an id, so that it is applied once, however often it is sent with this id
// and the same contents within 24 hours. At most 64 characters. By default every call gets a new id.
// Every write takes it.
func WithRequestID(id string) WriteOption {
	return func(s *writeSettings) {
		s.given = append(s.given, requestIDOption)
		s.requestID = id
	}
}

// WithExpectedRevision makes a write of an item conditional: it happens only if this is the item's
// revision, and is [ErrConflict] otherwise.
func WithExpectedRevision(revision int64) WriteOption {
	return func(s *writeSettings) {
		s.given = append(s.given, expectedRevisionOption)
		s.expectedRevision = &revision
	}
}

// WithExpectedVersion makes a write of a state, fact or document conditional: it happens only if
// this is its version, and is [ErrConflict] otherwise. 0: only if it does not exist.
func WithExpectedVersion(version int64) WriteOption {
	return func(s *writeSettings) {
		s.given = append(s.given, expectedVersionOption)
		s.expectedVersion = &version
	}
}

// WithTTL sets how long a state lives from now. Without it: until it is deleted.
func WithTTL(ttl time.Duration) WriteOption {
	return func(s *writeSettings) {
		s.given = append(s.given, ttlOption)
		s.ttl = &ttl
	}
}

// WithDescription says what a state is for. Without it the present description stays.
func WithDescription(description string) WriteOption {
	return func(s *writeSettings) {
		s.given = append(s.given, descriptionOption)
		s.description = &description
	}
}

// WithFields names the fields that an update takes, such as "labels"; those that are empty are
// cleared. "*": all. Without it an update takes those that are set.
func WithFields(names ...string) WriteOption {
	return func(s *writeSettings) {
		s.given = append(s.given, fieldsOption)
		s.fields = append(s.fields, names...)
	}
}

// writeSettingsFrom applies the options of a write, which may be a request id or one of accepted.
func writeSettingsFrom(options []WriteOption, accepted ...writeOptionName) (*writeSettings, error) {
	settings := &writeSettings{}
	for _, option := range options {
		option(settings)
	}
	for _, name := range settings.given {
		if name != requestIDOption && !slices.Contains(accepted, name) {
			return nil, invalidArgument("", fmt.Sprintf("%s has no meaning for this write", name))
		}
	}
	if settings.requestID == "" {
		settings.requestID = newUUID()
	}
	return settings, nil
}
