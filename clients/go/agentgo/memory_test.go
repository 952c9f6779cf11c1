package agentgo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	agentmemory "github.com/oopslink/agent-go/pkg/core/memory"
	"github.com/oopslink/agent-go/pkg/support/llms"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/agentgo"
)

func userItem(words string) agentmemory.MemoryItem {
	return agentmemory.NewChatMessageMemoryItem(llms.NewUserMessage(words))
}

func retrieve(
	t *testing.T, memory agentmemory.Memory, options ...agentmemory.MemoryRetrieveOption,
) []agentmemory.MemoryItem {
	t.Helper()
	items, err := memory.Retrieve(t.Context(), options...)
	must(t, err)
	return items
}

// compare retrieves from both memories with the same options. With a limit below the number of items
// agent-go's own returns the oldest and this one the newest; else they are equal.
func compare(t *testing.T, simple, durable agentmemory.Memory, limit int) {
	t.Helper()
	limited := agentmemory.WithMaxLimit(limit)
	all := views(retrieve(t, simple, agentmemory.WithNoLimit()))
	want := views(retrieve(t, simple, limited))
	if limit > 0 && limit < len(all) {
		equal(t, "what agent-go's own memory returns", want, all[:limit])
		want = all[len(all)-limit:]
	}
	got := views(retrieve(t, durable, limited))
	equal(t, fmt.Sprintf("the number of items, of %d, with a limit of %d", len(all), limit), len(got), len(want))
	for index := range want {
		equal(t, fmt.Sprintf("item %d with a limit of %d", index, limit), got[index], want[index])
	}
}

// The same calls on agent-go's own memory and on this one have the same results, except for the limit.
func TestItIsLikeSimpleMemory(t *testing.T) {
	for _, start := range []uint64{1, 20260, 987654321} {
		t.Run(fmt.Sprint(start), func(t *testing.T) {
			t.Logf("the random numbers begin with %d", start)
			c := chance{rand.New(rand.NewPCG(start, start))}
			simple, durable := agentmemory.NewSimpleMemory(), agentgo.NewMemory(newClient(t))
			var added []agentmemory.MemoryItem
			for step := range 300 {
				switch choice := c.IntN(100); {
				case choice < 65 || len(added) == 0:
					added = append(added, c.item(step))
					item := added[len(added)-1]
					must(t, simple.Add(t.Context(), item))
					must(t, durable.Add(t.Context(), item))
				case choice < 72: // An item that is added again is stored twice.
					item := pick(c, added...)
					must(t, simple.Add(t.Context(), item))
					must(t, durable.Add(t.Context(), item))
				case choice < 98:
					compare(t, simple, durable, c.IntN(len(added)+6)-3)
				default:
					must(t, simple.Reset())
					must(t, durable.Reset())
				}
			}
			compare(t, simple, durable, -1)
		})
	}
}

func TestLimits(t *testing.T) {
	simple, durable := agentmemory.NewSimpleMemory(), agentgo.NewMemory(newClient(t))
	limits := []int{-100, -1, 0, 1, 3, 4, 5, 1 << 40}
	for _, limit := range limits {
		compare(t, simple, durable, limit)
	}
	for _, words := range []string{"one", "two", "three", "four"} {
		item := userItem(words)
		must(t, simple.Add(t.Context(), item))
		must(t, durable.Add(t.Context(), item))
	}
	for _, limit := range limits {
		compare(t, simple, durable, limit)
	}
	equal(t, "no option", len(retrieve(t, durable)), 4)
	newest := retrieve(t, durable, agentmemory.WithMaxLimit(2))
	equal(t, "the newest two, the older first",
		[]any{words(newest[0]), words(newest[1])}, []any{"three", "four"})
}

func words(item agentmemory.MemoryItem) string {
	message, _ := item.AsMessage()
	return message.Parts[0].(*llms.TextPart).Text
}

// Without a limit all items come, in order, though the server sends at most 1000 or about 3 MiB at a
// time.
func TestWithoutALimitItPages(t *testing.T) {
	client := newClient(t)
	durable := agentgo.NewMemory(client)
	const count = 2345
	for start := 0; start < count; start += 1000 {
		var batch []*memory.Item
		for number := start; number < min(start+1000, count); number++ {
			batch = append(batch, &memory.Item{Content: fmt.Sprintf("item %d", number)})
		}
		_, err := client.BatchAdd(t.Context(), batch)
		must(t, err)
	}
	items := retrieve(t, durable)
	equal(t, "how many", len(items), count)
	for index, item := range items {
		equal(t, "the order", item.GetContent(), any(fmt.Sprintf("item %d", index)))
	}
	must(t, durable.Reset())
	equal(t, "after the reset", len(retrieve(t, durable)), 0)
}

func TestConcurrentAdds(t *testing.T) {
	durable := agentgo.NewMemory(newClient(t))
	twice := userItem("twice")
	var adding sync.WaitGroup
	failures := make(chan error, 1000)
	for worker := range 8 {
		adding.Go(func() {
			for number := range 10 {
				failures <- durable.Add(t.Context(), userItem(fmt.Sprintf("%d %d", worker, number)))
			}
			failures <- durable.Add(t.Context(), twice)
		})
	}
	adding.Wait()
	close(failures)
	for err := range failures {
		must(t, err)
	}
	seen := map[string]int{}
	last := map[string]int{}
	for _, item := range retrieve(t, durable) {
		seen[words(item)]++
		var worker string
		var number int
		if _, err := fmt.Sscan(words(item), &worker, &number); err == nil {
			if before, ok := last[worker]; ok {
				equal(t, "the order of one goroutine's adds", number, before+1)
			}
			last[worker] = number
		}
	}
	equal(t, "how many different items", len(seen), 81)
	equal(t, "how often the same", seen["twice"], 8)
}

func TestAContextThatEndedEndsTheCall(t *testing.T) {
	durable := agentgo.NewMemory(newClient(t))
	ended, end := context.WithCancel(t.Context())
	end()
	if err := durable.Add(ended, userItem("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("the add returned %v", err)
	}
	if _, err := durable.Retrieve(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the retrieval returned %v", err)
	}
	late, end := context.WithTimeout(t.Context(), 0)
	defer end()
	if err := durable.Add(late, userItem("later")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the add returned %v", err)
	}
	equal(t, "how many items", len(retrieve(t, durable)), 0)
}

// A session is a separate memory within the namespace, and a reset changes nothing else.
func TestSessions(t *testing.T) {
	client := newClient(t)
	state := agentgo.NewState(client)
	must(t, state.Put("plan", "walk"))
	all := agentgo.NewMemory(client)
	trip := agentgo.NewMemory(client, agentgo.WithSession("trip"))
	work := agentgo.NewMemory(client, agentgo.WithSession("work"))
	for _, item := range []struct {
		memory agentmemory.Memory
		words  string
	}{{trip, "Lyon"}, {work, "report"}, {all, "tea"}, {trip, "12:04"}} {
		must(t, item.memory.Add(t.Context(), userItem(item.words)))
	}
	contents := func(memory agentmemory.Memory) []string {
		found := []string{}
		for _, item := range retrieve(t, memory) {
			found = append(found, words(item))
		}
		return found
	}
	equal(t, "the trip", contents(trip), []string{"Lyon", "12:04"})
	equal(t, "everything", contents(all), []string{"Lyon", "report", "tea", "12:04"})
	must(t, trip.Reset())
	equal(t, "the trip", contents(trip), []string{})
	equal(t, "everything", contents(all), []string{"report", "tea"})
	must(t, all.Reset())
	equal(t, "everything", contents(all), []string{})
	plan, err := state.Get("plan")
	must(t, err)
	equal(t, "the state", plan, any("walk"))
}

// A message of agent-go is returned as an item of agent-go's own type.
func TestTheTypeOfMessages(t *testing.T) {
	durable := agentgo.NewMemory(newClient(t))
	must(t, durable.Add(t.Context(), userItem("tea")))
	item := retrieve(t, durable)[0]
	if _, ok := item.(*agentmemory.ChatMessageMemoryItem); !ok {
		t.Errorf("it is a %T", item)
	}
}

func TestWhatCannotBeKeptIsRefused(t *testing.T) {
	durable := agentgo.NewMemory(newClient(t), nil)
	message := func(parts ...llms.Part) agentmemory.MemoryItem {
		return agentmemory.NewChatMessageMemoryItem(&llms.Message{Parts: parts})
	}
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	refused := map[string]agentmemory.MemoryItem{
		"no item":          nil,
		"a nil item":       (*agentmemory.GenericMemoryItem)(nil),
		"a nil part":       message(nil),
		"a nil text":       message((*llms.TextPart)(nil)),
		"a foreign part":   message(foreignPart{}),
		"a function":       message(&llms.DataPart{Data: map[string]any{"f": func() {}}}),
		"a year 12026":     agentmemory.NewChatMessageMemoryItem(&llms.Message{Timestamp: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}),
		"a cycle":          agentmemory.NewGenericMemoryItem(cyclic),
		"too many parts":   message(slices.Repeat([]llms.Part{&llms.TextPart{}}, 257)...),
		"too large a file": message(&llms.BinaryPart{Content: make([]byte, 1<<20+1)}),
	}
	for name, item := range refused {
		err := durable.Add(t.Context(), item)
		if !errors.Is(err, memory.ErrInvalidArgument) && !errors.Is(err, memory.ErrLimitExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		if own := new(memory.Error); !errors.As(err, &own) || own.Field == "" {
			t.Errorf("%s: no field is named: %v", name, err)
		}
	}
	var missing context.Context
	if err := durable.Add(missing, agentmemory.NewGenericMemoryItem("x")); !errors.Is(err, memory.ErrInvalidArgument) {
		t.Errorf("without a context: %v", err)
	}
	equal(t, "how many items", len(retrieve(t, durable)), 0)
}

type foreignPart struct{}

func (foreignPart) Type() llms.PartType { return "foreign" }
