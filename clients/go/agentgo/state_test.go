package agentgo_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oopslink/agent-go/pkg/core/agent"
	"github.com/oopslink/agent-go/pkg/core/agent/state"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/agentgo"
)

func get(t *testing.T, state agent.AgentState, key string) any {
	t.Helper()
	value, err := state.Get(key)
	must(t, err)
	return value
}

// The same calls on agent-go's own states and on this one have the same results: those of the state in
// files to the letter, those of the state in memory as JSON.
func TestItIsLikeAgentGosStates(t *testing.T) {
	const start = 42
	t.Logf("the random numbers begin with %d", start)
	c := chance{rand.New(rand.NewPCG(start, start))}
	inMemory, durable := state.NewInMemoryState(), agentgo.NewState(newClient(t))
	inFiles, err := state.NewFileState(t.TempDir())
	must(t, err)
	all := []agent.AgentState{inMemory, inFiles, durable}
	keys := []string{"plan", "user/ada", "été 🚆", "a b", "*", "user/bob"}
	for range 400 {
		key := pick(c, keys...)
		switch choice := c.IntN(100); {
		case choice < 50:
			value := c.value(3)
			for _, state := range all {
				must(t, state.Put(key, value))
			}
		case choice < 65:
			for _, state := range all {
				must(t, state.Delete(key))
			}
		case choice < 97:
			got := get(t, durable, key)
			equal(t, key+" as in files", got, get(t, inFiles, key))
			equal(t, key+" as in memory", got, asJSON(get(t, inMemory, key)))
		default:
			for _, state := range all {
				must(t, state.Clear())
			}
		}
	}
	for _, key := range keys {
		equal(t, key, get(t, durable, key), get(t, inFiles, key))
	}
}

func TestAnAbsentKeyIsNil(t *testing.T) {
	durable := agentgo.NewState(newClient(t))
	equal(t, "an absent key", get(t, durable, "nothing"), nil)
	must(t, durable.Delete("nothing"))
	must(t, durable.Clear())
	must(t, durable.Put("null", nil))
	equal(t, "a null", get(t, durable, "null"), nil)
}

// A struct is kept as JSON, as in agent-go's state in files.
func TestAStructIsKeptAsJSON(t *testing.T) {
	type step struct {
		Name   string   `json:"name"`
		Tools  []string `json:"tools,omitempty"`
		Secret string   `json:"-"`
		Count  int
	}
	durable := agentgo.NewState(newClient(t))
	must(t, durable.Put("plan", &step{Name: "book", Tools: []string{"trains"}, Secret: "x", Count: 3}))
	equal(t, "the plan", get(t, durable, "plan"),
		any(map[string]any{"name": "book", "tools": []any{"trains"}, "Count": 3.0}))
}

func TestKeysAndValuesThatAreRefused(t *testing.T) {
	client := newClient(t)
	durable := agentgo.NewState(client)
	for _, key := range []string{"", strings.Repeat("k", 513), "a\nb", "\xff"} {
		_, getError := durable.Get(key)
		for call, err := range map[string]error{
			"Put": durable.Put(key, 1), "Get": getError, "Delete": durable.Delete(key),
		} {
			if !errors.Is(err, memory.ErrInvalidArgument) || !strings.Contains(err.Error(), fmt.Sprintf("%q", key)) {
				t.Errorf("%s of %.20q: %v", call, key, err)
			}
		}
	}
	for name, value := range map[string]any{
		"NaN": math.NaN(), "a channel": make(chan int), "2^53+1": 1<<53 + 1, "too much": strings.Repeat("v", 1<<20),
	} {
		err := durable.Put("key", value)
		if !errors.Is(err, memory.ErrInvalidArgument) && !errors.Is(err, memory.ErrLimitExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	equal(t, "the key", get(t, durable, "key"), nil)
	must(t, durable.Put(strings.Repeat("k", 512), 1))
}

// The state is that of the client's namespace, for whoever reads it.
func TestTheStateIsThatOfTheNamespace(t *testing.T) {
	client := newClient(t)
	durable := agentgo.NewState(client)
	must(t, durable.Put("plan", "walk"))
	entry, err := client.LoadState(t.Context(), "plan")
	must(t, err)
	equal(t, "the value", entry.Value, any("walk"))
	other := agentgo.NewState(client.Namespace(newNamespace()))
	equal(t, "another namespace", get(t, other, "plan"), nil)
	must(t, agentgo.NewMemory(client).Add(t.Context(), userItem("tea")))
	must(t, durable.Clear())
	equal(t, "the plan", get(t, durable, "plan"), nil)
	equal(t, "the items", len(retrieve(t, agentgo.NewMemory(client))), 1)
}
