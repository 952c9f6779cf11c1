package memory_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	memory "github.com/memory-service/memory-service/clients/go"
)

// twoServers have separate records, so that tests see which of them was called. They are in the order in
// which the calls of a namespace try them.
func twoServers(t *testing.T, namespace string) (first, second *server, target string) {
	t.Helper()
	first, second = ownServer(t, "", "--embedder", "none"), ownServer(t, "", "--embedder", "none")
	target = first.address + ", " + second.address
	if weight(second, namespace) > weight(first, namespace) {
		first, second = second, first
	}
	return first, second, target
}

// weight compares like the weight of a server.
func weight(at *server, namespace string) string {
	digest := sha256.Sum256([]byte(at.address + "\x00" + namespace))
	return string(digest[:8])
}

func TestCallsGoByNamespaceAndTheRestToTheFirst(t *testing.T) {
	one, other, target := twoServers(t, "")
	if !strings.HasPrefix(target, one.address) {
		one, other = other, one
	}
	client := dialTo(t, target)
	var first []string
	for number := range 8 {
		namespace := fmt.Sprintf("user-%d", number)
		bound := client.Namespace(namespace)
		addTexts(t, bound, namespace)
		ok[*memory.ImportSummary](t)(bound.ImportItems(soon(t), memory.Records(slices.Values([]*memory.Item{}))))
		equal(t, texts(retrieve(t, bound)), namespace)
		holder, empty := one, other
		if weight(other, namespace) > weight(one, namespace) {
			holder, empty = other, one
		} else {
			first = append(first, namespace)
		}
		equal(t, texts(retrieve(t, dialTo(t, holder.address).Namespace(namespace))), namespace)
		equal(t, texts(retrieve(t, dialTo(t, empty.address).Namespace(namespace))), "")
	}
	var listed []string
	for summary, err := range client.ListNamespaces(soon(t), "") {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, summary.Namespace)
	}
	equal(t, listed, first)
}

func TestNoCallFailsWhenOneOfTwoServersGoesAway(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			first, second, target := twoServers(t, "ada")
			client := dialTo(t, target).Namespace("ada")
			addTexts(t, client, "before")
			equal(t, texts(retrieve(t, dialTo(t, first.address).Namespace("ada"))), "before")
			end(first)
			for range 20 {
				addTexts(t, client, "after")
				ok[*memory.ServerInfo](t)(client.Info(soon(t)))
			}
			equal(t, len(retrieve(t, dialTo(t, second.address).Namespace("ada"))), 20)
			count := 0
			for _, err := range client.Export(soon(t)) {
				if err != nil {
					t.Fatal(err)
				}
				count++
			}
			equal(t, count, 20)
		})
	}
}

func TestAServerThatIsAwayAtFirstIsPassedOver(t *testing.T) {
	first, second, target := twoServers(t, "ada")
	first.kill()
	client := dialTo(t, target).Namespace("ada")
	next, stop := iter.Pull2(client.Watch(soon(t), memory.WithAfterRevision(0)))
	defer stop()
	addTexts(t, dialTo(t, second.address).Namespace("ada"), "one")
	change, err, _ := next()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, change.Item.GetContent(), any("one"))
	// An import is tried once, at a server that is not known to be unavailable.
	ok[*memory.ImportSummary](t)(client.ImportItems(soon(t), memory.Records(slices.Values([]*memory.Item{{Content: "two"}}))))
	equal(t, len(retrieve(t, client)), 2)
}

// TestAServerThatRefusesAsItStopsIsPassedOver: it is reachable, but answers UNAVAILABLE.
func TestAServerThatRefusesAsItStopsIsPassedOver(t *testing.T) {
	refused, attempts := refusing(t, codes.Unavailable)
	running := ownServer(t, "", "--embedder", "none")
	leaving := &server{address: refused}
	namespace := "user"
	for weight(leaving, namespace) < weight(running, namespace) {
		namespace += "-"
	}
	addTexts(t, dialTo(t, running.address).Namespace(namespace), "one")
	for method, call := range map[string]func(*memory.Client) error{
		"Export": func(client *memory.Client) error { return firstError(client.Export(soon(t))) },
		"Add":    func(client *memory.Client) error { return client.Add(soon(t), &memory.Item{Content: "two"}) },
	} {
		client := dialTo(t, running.address+","+refused).Namespace(namespace)
		if err := call(client); err != nil {
			t.Error(err)
		}
		equal(t, attempts(method), 1)
		equal(t, len(retrieve(t, client)) > 0, true)
		equal(t, attempts("Retrieve"), 0)
	}
}

func TestAWatchGoesOnAtTheNextServer(t *testing.T) {
	first, second, target := twoServers(t, "ada")
	// Their namespaces have the same revisions, like those of servers over one database.
	for _, at := range []*server{first, second} {
		addTexts(t, dialTo(t, at.address).Namespace("ada"), "one", "two")
	}
	next, stop := iter.Pull2(dialTo(t, target).Namespace("ada").Watch(soon(t), memory.WithAfterRevision(0)))
	defer stop()
	for i, text := range []string{"one", "two", "three"} {
		if i == 2 {
			first.kill()
			addTexts(t, dialTo(t, second.address).Namespace("ada"), "three")
		}
		change, err, _ := next()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, change.Item.GetContent(), any(text))
	}
}

func TestCallsWaitWhileAllServersAreAway(t *testing.T) {
	folder := t.TempDir()
	held, other := ownServer(t, folder, "--embedder", "none"), ownServer(t, "", "--embedder", "none")
	namespace := "user"
	for weight(held, namespace) < weight(other, namespace) {
		namespace += "-"
	}
	client := dialTo(t, other.address+","+held.address).Namespace(namespace)
	addTexts(t, client, "before")
	held.kill()
	other.kill()
	added := make(chan error)
	go func() { added <- client.Add(soon(t), &memory.Item{Content: "after"}) }()
	ownServer(t, folder, "--embedder", "none", "--address", held.address)
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	equal(t, texts(retrieve(t, client)), "before after")
}

func TestServersThatWereNeverThereAreToldSoon(t *testing.T) {
	first, second, target := twoServers(t, "ada")
	first.kill()
	second.kill()
	client := dialTo(t, target)
	begun := time.Now()
	wantError(t, client.Add(soon(t), &memory.Item{Content: "x"}), memory.ErrUnavailable)
	wantError(t, firstError(client.Watch(soon(t))), memory.ErrUnavailable)
	if took := time.Since(begun); took > 20*time.Second {
		t.Fatal(took)
	}
	client.Close()
	if err := client.Add(context.Background(), &memory.Item{Content: "x"}); err == nil {
		t.Fatal("a closed client writes")
	}
}

func TestTheNamespaceIsToldWithEveryCallThatHasOne(t *testing.T) {
	var mutex sync.Mutex
	told := map[string][]string{}
	note := func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		received, _ := metadata.FromIncomingContext(stream.Context())
		method, _ := grpc.MethodFromServerStream(stream)
		mutex.Lock()
		defer mutex.Unlock()
		told[method[strings.LastIndex(method, "/")+1:]] = received.Get("memory-namespace")
		return status.Error(codes.NotFound, "no")
	}
	listener := ok[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	serving := grpc.NewServer(grpc.UnknownServiceHandler(note))
	go serving.Serve(listener)
	t.Cleanup(serving.Stop)
	client := dialTo(t, listener.Addr().String()).Namespace("Zoë")
	ctx := soon(t)
	client.Info(ctx)
	client.LoadState(ctx, "k")
	client.ImportItems(ctx, memory.Records(slices.Values([]*memory.Item{})))
	firstError(client.Watch(ctx))
	encoded := []string{"Zo%C3%AB"}
	mutex.Lock()
	defer mutex.Unlock()
	equal(t, told, map[string][]string{"GetInfo": nil, "LoadState": encoded, "Import": encoded, "Watch": encoded})
}
