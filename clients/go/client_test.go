package memory_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
)

func TestErrorsTellCodeReasonFieldAndMetadata(t *testing.T) {
	client := dial(t)
	_, err := client.Get(soon(t), "nobody")
	failure := wantError(t, err, memory.ErrNotFound)
	equal(t, failure.Code, "NOT_FOUND")
	equal(t, failure.Reason, memory.ReasonItemNotFound)
	equal(t, failure.Metadata["id"], "nobody")
	_, err = client.Namespace("").LoadState(soon(t), "k")
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "namespace")
	for _, other := range []error{memory.ErrNotFound, memory.ErrUnavailable, context.Canceled, nil} {
		if errors.Is(err, other) {
			t.Errorf("%v is also %v", err, other)
		}
	}
	_, err = client.AddItem(soon(t), &memory.Item{Content: "not UTF-8: \xff"})
	wantError(t, err, memory.ErrInvalidArgument)
}

func TestAVectorOfAnotherDimensionIsRefused(t *testing.T) {
	client := dial(t)
	add(t, client, &memory.Item{Content: "a", Embedding: []float32{1, 0, 0}})
	err := client.Add(soon(t), &memory.Item{Content: "b", Embedding: []float32{1, 0}})
	failure := wantError(t, err, memory.ErrInvalidArgument)
	equal(t, failure.Reason, memory.ReasonDimensionMismatch)
	equal(t, failure.Field, "item.embedding")
	equal(t, failure.Metadata["expected"], "3")
	_, err = client.AddItem(soon(t), &memory.Item{Content: "c", Embedding: []float32{}})
	wantError(t, err, memory.ErrInvalidArgument)
}

func TestATooLargeTextIsALimitExceeded(t *testing.T) {
	client := dial(t)
	limit := ok[*memory.ServerInfo](t)(client.Info(soon(t))).Limits["text_bytes_max"]
	_, err := client.AddItem(soon(t), &memory.Item{Content: string(make([]byte, limit+1))})
	failure := wantError(t, err, memory.ErrLimitExceeded)
	equal(t, failure.Reason, memory.ReasonLimitExceeded)
	equal(t, failure.Metadata["limit_name"], "text_bytes_max")
}

func TestOptionsThatDoNotFitAreRefused(t *testing.T) {
	client := dial(t)
	ctx := soon(t)
	item := &memory.Item{ID: "x", Content: "x"}
	attempts := map[string]func() error{
		"AddItem": func() error {
			_, err := client.AddItem(ctx, item, memory.WithExpectedRevision(1))
			return err
		},
		"Delete": func() error {
			_, err := client.Delete(ctx, "x", memory.WithExpectedVersion(1))
			return err
		},
		"SaveState": func() error {
			_, err := client.SaveState(ctx, "k", 1, memory.WithFields("value"))
			return err
		},
		"Get": func() error {
			_, err := client.Get(ctx, "x", memory.WithQuery("tea"))
			return err
		},
		"Retrieve": func() error {
			_, err := client.Retrieve(ctx, memory.WithNewestFirst())
			return err
		},
		"ListItems":      func() error { return firstError(client.ListItems(ctx, memory.WithMaxLimit(3))) },
		"SearchState":    func() error { return firstError(client.SearchState(ctx, "*", memory.WithPreviews())) },
		"ListNamespaces": func() error { return firstError(client.ListNamespaces(ctx, "", memory.WithPreviews())) },
		"ListLabelValues": func() error {
			return firstError(client.ListLabelValues(ctx, "k", "", memory.WithPreviews()))
		},
		"Watch":  func() error { return firstError(client.Watch(ctx, memory.WithExportedEmbeddings())) },
		"Export": func() error { return firstError(client.Export(ctx, memory.WithHeartbeatInterval(time.Second))) },
	}
	for name, attempt := range attempts {
		if err := attempt(); !errors.Is(err, memory.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	equal(t, len(retrieve(t, client)), 0)
}

// firstError returns the first error that an iteration yields.
func firstError[T any](sequence func(yield func(T, error) bool)) error {
	for _, err := range sequence {
		if err != nil {
			return err
		}
	}
	return nil
}

// silent accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { connection.Close() })
		}
	}()
	return listener.Addr().String()
}

func TestDeadlinesEndCalls(t *testing.T) {
	address := silent(t)
	client := dialTo(t, address, memory.WithTimeout(50*time.Millisecond))
	err := client.Add(context.Background(), &memory.Item{Content: "x"})
	equal(t, wantError(t, err, memory.ErrDeadlineExceeded).Code, "DEADLINE_EXCEEDED")
	wantError(t, err, context.DeadlineExceeded)
	wantError(t, client.Reset(), memory.ErrDeadlineExceeded)

	patient := dialTo(t, address, memory.WithTimeout(0))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = patient.Info(ctx)
	wantError(t, err, context.DeadlineExceeded)
	wantError(t, firstError(patient.Watch(ctx)), context.DeadlineExceeded)
}

func TestADeadlineOfTheContextGoesBeforeTheTimeout(t *testing.T) {
	client := dial(t, memory.WithTimeout(time.Nanosecond))
	_, err := client.Info(context.Background())
	wantError(t, err, memory.ErrDeadlineExceeded)
	ok[*memory.ServerInfo](t)(client.Info(soon(t)))
}

func TestACancellationEndsACall(t *testing.T) {
	client := dialTo(t, silent(t))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- client.Add(ctx, &memory.Item{Content: "x"}) }()
	cancel()
	err := <-ended
	equal(t, wantError(t, err, context.Canceled).Code, "CANCELLED")
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestAServerThatIsNotThereIsUnavailable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	client := dialTo(t, address, memory.WithMaxAttempts(1))
	_, err = client.Info(soon(t))
	equal(t, wantError(t, err, memory.ErrUnavailable).Reason, memory.Reason(""))
	wantError(t, firstError(client.Watch(soon(t))), memory.ErrUnavailable)
	_, err = client.ImportItems(soon(t), memory.Records(func(func(*memory.Item) bool) {}))
	wantError(t, err, memory.ErrUnavailable)
}

func TestAClosedClientSaysSo(t *testing.T) {
	client := dial(t)
	watched := make(chan error)
	began := make(chan bool)
	add(t, client, &memory.Item{Content: "x"})
	ctx := soon(t)
	go func() {
		for _, err := range client.Watch(ctx, memory.WithAfterRevision(0)) {
			if err != nil {
				watched <- err
				return
			}
			close(began)
		}
	}()
	<-began
	if err := errors.Join(client.Namespace("other").Close(), client.Close()); err != nil {
		t.Fatal(err)
	}
	err := <-watched
	wantError(t, err, memory.ErrClosed)
	_, err = client.Info(context.Background())
	wantError(t, err, memory.ErrClosed)
	if errors.Is(err, context.Canceled) {
		t.Fatal("nobody cancelled the call")
	}
}

func TestNamespacesShareAConnectionAndNothingElse(t *testing.T) {
	client := dial(t)
	other := client.Namespace(namespaceOf(t) + "/other")
	addTexts(t, client, "mine")
	addTexts(t, other, "another's")
	equal(t, texts(retrieve(t, client)), "mine")
	equal(t, texts(retrieve(t, other)), "another's")
}

func TestSettingsOutOfRangeAreRefused(t *testing.T) {
	for field, refused := range map[string]struct {
		target string
		option memory.DialOption
	}{
		"timeout":      {"127.0.0.1:1", memory.WithTimeout(-time.Second)},
		"max_attempts": {"127.0.0.1:1", memory.WithMaxAttempts(6)},
		"keepalive":    {"127.0.0.1:1", memory.WithKeepalive(0)},
		"headers":      {"127.0.0.1:1", memory.WithHeaders(map[string]string{"x": "two\nlines"})},
		"token":        {"memory.example.org:50051", memory.WithAPIKey("secret")},
		"target":       {"\x00", memory.WithTimeout(0)},
	} {
		_, err := memory.Dial(refused.target, refused.option)
		equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, field)
	}
	_, err := memory.Dial("127.0.0.1:1", memory.WithMaxAttempts(0))
	wantError(t, err, memory.ErrInvalidArgument)
}

func TestATokenNeedsTLSOrThisMachine(t *testing.T) {
	token := memory.WithAPIKey("secret")
	for target, allowed := range map[string]bool{
		"127.0.0.1:50051":           true,
		"127.8.8.8:50051":           true,
		"localhost:50051":           true,
		"[::1]:50051":               true,
		"dns:///localhost:50051":    true,
		"dns:127.0.0.1:50051":       true,
		"passthrough:///[::1]:1":    true,
		"unix:///run/memory.sock":   true,
		"128.0.0.1:50051":           false,
		"localhost.example.org:1":   false,
		"example.org":               false,
		"dns:///example.org:50051":  false,
		"dns://127.0.0.1/example:1": false,
		"[2001:db8::1]:50051":       false,
	} {
		client, err := memory.Dial(target, token)
		if (err == nil) != allowed {
			t.Errorf("%s: %v", target, err)
		}
		if err == nil {
			client.Close()
			continue
		}
		encrypted, err := memory.Dial(target, token, memory.WithTLS(&tls.Config{}))
		if err != nil {
			t.Errorf("%s with TLS: %v", target, err)
			continue
		}
		encrypted.Close()
	}
}
