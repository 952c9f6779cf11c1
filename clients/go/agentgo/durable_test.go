package agentgo_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	agentmemory "github.com/oopslink/agent-go/pkg/core/memory"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/agentgo"
)

// Added items are there after the server was stopped, and after it was killed.
func TestItemsAndStateOutliveTheServer(t *testing.T) {
	const start = 7
	t.Logf("the random numbers begin with %d", start)
	c := chance{rand.New(rand.NewPCG(start, start))}
	dataDir := t.TempDir()
	simple := agentmemory.NewSimpleMemory()
	plan := map[string]any{"steps": []any{"book", "go"}, "done": 1.0}
	for round, end := range []func(*server){(*server).terminate, (*server).kill, (*server).terminate} {
		server := startServer(t, dataDir)
		client := dial(t, server.address, "durable")
		durable, state := agentgo.NewMemory(client), agentgo.NewState(client)
		compare(t, simple, durable, -1)
		if found, err := state.Get("plan"); round > 0 {
			must(t, err)
			equal(t, "the state", found, any(plan))
		}
		for number := range 20 {
			item := c.item(100*round + number)
			must(t, simple.Add(t.Context(), item))
			must(t, durable.Add(t.Context(), item))
		}
		must(t, state.Put("plan", plan))
		end(server)
	}
	compare(t, simple, agentgo.NewMemory(dial(t, startServer(t, dataDir).address, "durable")), -1)
}

// A caller repeats an Add whose answer was lost: the item is stored once. Added once more, it is stored
// twice, as in agent-go's own memory.
func TestAnAddThatIsMadeAgainIsAppliedOnce(t *testing.T) {
	namespace := newNamespace()
	direct := newClient(t).Namespace(namespace)
	road := openRoad(t, shared.address)
	client, err := memory.Dial(road.address, memory.WithNamespace(namespace))
	must(t, err)
	defer func() { must(t, client.Close()) }()
	durable := agentgo.NewMemory(client)
	must(t, durable.Add(t.Context(), userItem("before")))

	road.swallowAnswers()
	item := userItem("Ada likes tea")
	added, answerLost := context.WithCancel(t.Context())
	failure := make(chan error, 1)
	go func() { failure <- durable.Add(added, item) }()
	seen := 0
	for change, err := range direct.Watch(t.Context(), memory.WithAfterRevision(0)) {
		must(t, err)
		if change.Type == memory.ItemAdded {
			seen++
		}
		if seen == 2 {
			break
		}
	}
	answerLost()
	if err := <-failure; !errors.Is(err, context.Canceled) {
		t.Fatalf("the add returned %v", err)
	}
	road.reopen()

	must(t, durable.Add(t.Context(), item))
	equal(t, "how many items after the second try", len(retrieve(t, durable)), 2)
	must(t, durable.Add(t.Context(), item))
	found := retrieve(t, durable)
	equal(t, "how many items when it was added again", len(found), 3)
	equal(t, "the item and its double", viewOf(found[2]), viewOf(found[1]))
}

// road is a way to a server that can lose what the server answers.
type road struct {
	t       *testing.T
	address string
	target  string

	mutex    sync.Mutex
	swallows bool
	open     []net.Conn
}

func openRoad(t *testing.T, target string) *road {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	made := &road{t: t, address: listener.Addr().String(), target: target}
	t.Cleanup(func() {
		_ = listener.Close()
		made.reopen()
	})
	go func() {
		for {
			traveller, err := listener.Accept()
			if err != nil {
				return
			}
			made.carry(traveller)
		}
	}()
	return made
}

func (r *road) carry(near net.Conn) {
	far, err := net.Dial("tcp", r.target)
	if err != nil {
		_ = near.Close()
		return
	}
	r.mutex.Lock()
	r.open = append(r.open, near, far)
	r.mutex.Unlock()
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	go func() {
		_, _ = io.Copy(writer(func(answer []byte) (int, error) {
			r.mutex.Lock()
			swallows := r.swallows
			r.mutex.Unlock()
			if swallows {
				return len(answer), nil
			}
			return near.Write(answer)
		}), far)
		_ = near.Close()
	}()
}

func (r *road) swallowAnswers() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.swallows = true
}

// reopen ends all connections that are open, and carries new ones both ways.
func (r *road) reopen() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.swallows = false
	for _, connection := range r.open {
		_ = connection.Close()
	}
	r.open = nil
}

type writer func([]byte) (int, error)

func (w writer) Write(data []byte) (int, error) { return w(data) }
