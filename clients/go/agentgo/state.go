package agentgo

import (
	"context"
	"errors"
	"fmt"

	"github.com/oopslink/agent-go/pkg/core/agent"

	memory "github.com/memory-service/memory-service/clients/go"
)

// NewState returns an agent-go state on a memory server, under the state keys of the namespace of client.
// It replaces agent-go's NewInMemoryState and NewFileState. It is safe for concurrent use, and does not
// close the client.
//
// Its errors are those of the client, for errors.Is and errors.As, such as [memory.ErrUnavailable].
func NewState(client *memory.Client) agent.AgentState {
	return &serverState{client: client}
}

type serverState struct {
	client *memory.Client
}

// Get returns the value of a key, with the types of encoding/json, like agent-go's state in files: numbers
// are float64. Nil: there is no such key, or its value is null.
func (s *serverState) Get(key string) (any, error) {
	entry, err := s.client.LoadState(context.Background(), key)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("agentgo: state %q: %w", key, err)
	}
	return entry.Value, nil
}

// Put stores anything that encoding/json can write, at most 1 MiB, under a key of 1 to 512 bytes without
// control characters. Otherwise it returns [memory.ErrInvalidArgument] or [memory.ErrLimitExceeded], also
// for an integer beyond 2^53, which a float64 would alter: put it as a string.
func (s *serverState) Put(key string, value any) error {
	kept, err := toJSON(value)
	if err != nil {
		return refused("value", err)
	}
	if _, err := s.client.SaveState(context.Background(), key, kept.value); err != nil {
		return fmt.Errorf("agentgo: state %q: %w", key, err)
	}
	return nil
}

// Delete removes a key, if it exists.
func (s *serverState) Delete(key string) error {
	_, err := s.client.DeleteState(context.Background(), key)
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return fmt.Errorf("agentgo: state %q: %w", key, err)
	}
	return nil
}

// Clear removes all keys of the namespace, but not its items.
func (s *serverState) Clear() error {
	if _, err := s.client.ClearState(context.Background()); err != nil {
		return fmt.Errorf("agentgo: state: %w", err)
	}
	return nil
}
