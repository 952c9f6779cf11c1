package agentgo

import (
	"fmt"
	"time"
)

// timeNote returns a time in words where the server's own form of it, UTC to the microsecond, is less
// than the time itself; "" where it is not.
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

// notedTime returns the time that timeNote described, if it still is the one that the server has:
// another client may have changed that since.
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
