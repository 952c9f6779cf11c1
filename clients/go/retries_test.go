package memory_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	memory "github.com/memory-service/memory-service/clients/go"
)

// refusing runs a gRPC server that answers every call with a code and trailers, given as alternating keys
// and values. It returns the address and the number of calls of each method.
func refusing(t *testing.T, code codes.Code, trailers ...string) (address string, attempts func(method string) int) {
	t.Helper()
	var mutex sync.Mutex
	counts := map[string]int{}
	count := func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		name, _ := grpc.MethodFromServerStream(stream)
		mutex.Lock()
		defer mutex.Unlock()
		counts[name[strings.LastIndex(name, "/")+1:]]++
		stream.SetTrailer(metadata.Pairs(trailers...))
		return status.Error(code, "not now")
	}
	listener := ok[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	serving := grpc.NewServer(grpc.UnknownServiceHandler(count))
	go serving.Serve(listener)
	t.Cleanup(serving.Stop)
	return listener.Addr().String(), func(method string) int {
		mutex.Lock()
		defer mutex.Unlock()
		return counts[method]
	}
}

func TestCallsAreRetriedUnlessTheServerCouldNotTell(t *testing.T) {
	address, attempts := refusing(t, codes.Unavailable)
	ctx := soon(t)
	large := &memory.Item{Content: map[string]any{"text": strings.Repeat("x", 3<<20)}}
	calls := map[string]struct {
		attempts int
		call     func(client *memory.Client) error
	}{
		"Add": {5, func(client *memory.Client) error { return client.Add(ctx, large) }},
		"DeleteWhere": {5, func(client *memory.Client) error {
			_, err := client.DeleteWhere(ctx, memory.DeleteConditions{SessionID: "s"})
			return err
		}},
		"BatchWrite": {5, func(client *memory.Client) error {
			_, err := client.BatchWrite(ctx, []memory.WriteOperation{&memory.DeleteOperation{ID: "a"}})
			return err
		}},
		"Watch": {5, func(client *memory.Client) error { return firstError(client.Watch(ctx)) }},
		"GetInfo": {5, func(client *memory.Client) error {
			_, err := client.Info(ctx)
			return err
		}},
		"Import": {1, func(client *memory.Client) error {
			_, err := client.ImportItems(ctx, memory.Records(slices.Values([]*memory.Item{{Content: "x"}})))
			return err
		}},
		"Backup": {1, func(client *memory.Client) error {
			_, err := client.Backup(ctx, "")
			return err
		}},
		"DeleteNamespace": {1, func(client *memory.Client) error {
			_, err := client.DeleteNamespace(ctx)
			return err
		}},
		"ReviewQuarantined": {1, func(client *memory.Client) error {
			_, err := client.ReviewQuarantined(ctx, "w", memory.ReleaseQuarantined)
			return err
		}},
	}
	var group sync.WaitGroup
	for method, tried := range calls {
		group.Go(func() {
			client, err := memory.Dial(address)
			if err != nil {
				t.Error(err)
				return
			}
			defer client.Close()
			if err := tried.call(client); err == nil || attempts(method) != tried.attempts {
				t.Errorf("%s was tried %d times: %v", method, attempts(method), err)
			}
		})
	}
	group.Wait()
	once := dialTo(t, address, memory.WithMaxAttempts(1))
	_, err := once.LoadState(ctx, "k")
	wantError(t, err, memory.ErrUnavailable)
	equal(t, attempts("LoadState"), 1)
}

func TestAnOverloadedServerIsAskedAgainWhenItSaysSo(t *testing.T) {
	for pushback, wanted := range map[string]int{"1": 5, "-1": 1} {
		address, attempts := refusing(t, codes.ResourceExhausted, "grpc-retry-pushback-ms", pushback)
		client := dialTo(t, address)
		_, err := client.Info(soon(t))
		wantError(t, err, memory.ErrLimitExceeded)
		equal(t, attempts("GetInfo"), wanted)
	}
}

// TestACallThatComesTooEarlyComesAgain: one call a second is allowed, which callers do not notice.
func TestACallThatComesTooEarlyComesAgain(t *testing.T) {
	running := ownServer(t, t.TempDir(), "--calls-per-s-max", "1", "--embedder", "none")
	client := dialTo(t, running.address)
	for _, text := range []string{"one", "two"} {
		if err := client.Add(soon(t), &memory.Item{Content: text}); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, len(retrieve(t, client)), 2)
	hasty := dialTo(t, running.address, memory.WithMaxAttempts(1))
	wantError(t, untilOneFails(func() error {
		_, err := hasty.Retrieve(soon(t))
		return err
	}), memory.ErrLimitExceeded)
}

func untilOneFails(call func() error) (err error) {
	for range 1000 {
		if err = call(); err != nil {
			return err
		}
	}
	return nil
}

func TestACallThatTheOtherSideEndsWasNotCancelled(t *testing.T) {
	address, attempts := refusing(t, codes.Canceled)
	client := dialTo(t, address, memory.WithMaxAttempts(3))
	_, err := client.Info(soon(t))
	wantError(t, err, memory.ErrUnavailable)
	equal(t, attempts("GetInfo"), 3)
	if errors.Is(err, context.Canceled) {
		t.Fatal("nobody cancelled the call")
	}
	wantError(t, firstError(client.Watch(soon(t))), memory.ErrUnavailable)
}

// ends are the ways in which a server can end.
var ends = map[string]func(*server){"killed": (*server).kill, "stopped": (*server).stop}

// TestCallsGoOnWhileTheServerIsRestarted: writers and readers notice nothing, however the server ends.
func TestCallsGoOnWhileTheServerIsRestarted(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			dataDir := t.TempDir()
			running := ownServer(t, dataDir)
			client := dialTo(t, running.address)
			ok[*memory.ServerInfo](t)(client.Info(soon(t))) // From here on, calls wait.
			const writers = 4
			written := make(chan int, writers)
			ctx, stop := context.WithCancel(soon(t))
			defer stop()
			enough := make(chan bool, 1000)
			for writer := range writers {
				go func() { written <- writeUntil(ctx, t, client, writer, enough) }()
			}
			waitFor(enough, 40)
			end(running)
			restarted := ownServer(t, dataDir, "--address", running.address)
			equal(t, restarted.address, running.address)
			waitFor(enough, 40)
			stop()
			count := 0
			for range writers {
				count += <-written
			}
			equal(t, len(retrieve(t, client)), count) // Each write once.
		})
	}
}

// writeUntil adds items until ctx ends, without ever cancelling one; it returns how many.
func writeUntil(ctx context.Context, t *testing.T, client *memory.Client, writer int, added chan<- bool) (count int) {
	for ctx.Err() == nil {
		if err := client.Add(context.Background(), &memory.Item{Content: fmt.Sprintf("%d-%d", writer, count)}); err != nil {
			t.Error(err)
			return count
		}
		count++
		select {
		case added <- true:
		default:
		}
	}
	return count
}

func waitFor(happened <-chan bool, times int) {
	for range times {
		<-happened
	}
}
