// Command peer makes the calls of the corpus by the client's public methods; tests/vectors/README.md
// describes what it reads and writes.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
)

// streamTimeout ends a stream that does not yield the expected messages.
const streamTimeout = 40 * time.Second

// step is one line of input.
type step struct {
	Call     string            `json:"call"`
	Request  json.RawMessage   `json:"request"`
	Requests []json.RawMessage `json:"requests"`
	Take     int               `json:"take"`
}

// answer is one line of output; one of its fields is set.
type answer struct {
	Response      json.RawMessage   `json:"response,omitempty"`
	Responses     []json.RawMessage `json:"responses,omitzero"`
	Error         *refusal          `json:"error,omitempty"`
	Inexpressible string            `json:"inexpressible,omitempty"`
}

// refusal describes a failed call.
type refusal struct {
	Code     string            `json:"code"`
	Reason   string            `json:"reason"`
	Field    string            `json:"field"`
	Metadata map[string]string `json:"metadata"`
}

// inexpressible is the error of a request that the client cannot express.
type inexpressible struct{ where string }

func (i inexpressible) Error() string { return i.where }

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: peer ADDRESS")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers each line of input until there are no more.
func serve(address string, input io.Reader, output io.Writer) error {
	client, err := memory.Dial(address)
	if err != nil {
		return err
	}
	defer client.Close()
	lines, answers := bufio.NewReader(input), json.NewEncoder(output)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			given, err := answerTo(client, line)
			if err != nil {
				return err
			}
			if err := answers.Encode(given); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// answerTo makes a call. It returns an error for a line without a call, or for a failure outside the
// client.
func answerTo(client *memory.Client, line []byte) (*answer, error) {
	var asked step
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	given, err := perform(context.Background(), client, &asked)
	var lacking inexpressible
	var failed *memory.Error
	switch {
	case err == nil:
		return given, nil
	case errors.As(err, &lacking):
		return &answer{Inexpressible: lacking.where}, nil
	case errors.As(err, &failed):
		return &answer{Error: &refusal{
			Code:     failed.Code,
			Reason:   string(failed.Reason),
			Field:    failed.Field,
			Metadata: failed.Metadata,
		}}, nil
	}
	return nil, fmt.Errorf("%s: %w", asked.Call, err)
}
