package agentgo

import (
	"fmt"
	"time"
)

// timeNote returns a time as text if the server's form of it, UTC to the microsecond, would lose something,
// and "" otherwise.
func timeNote(at time.Time) (string, error) {
	_, offset := at.Zone()
	if offset == 0 && !at.IsZero() && at.Equal(at.Truncate(time.Microsecond)) {
		return "", nil
	}
	text, err := at.MarshalText()
	if err != nil {
		return "", fmt.Errorf("the time %v: %w", at, err)
	}
	return string(text), nil
}

// notedTime returns the time in a note of timeNote, if it is still the server's time, which another client
// may have changed since.
func notedTime(at time.Time, note string) time.Time {
	var exact time.Time
	if note == "" || exact.UnmarshalText([]byte(note)) != nil {
		return at
	}
	if exact.IsZero() || exact.Truncate(time.Microsecond).Equal(at) {
		return exact
	}
	return at
}
