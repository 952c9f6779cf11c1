// Command flood makes more calls than a server can answer, for the benchmarks: it takes little of the cores
// for each, so that the server is what is measured.
//
//	flood -address A -rate N | -callers N -for 5s -method M -connections 8 -deadline 1s
//
// A rate is how many calls are made a second, however they fare; callers wait for each answer before they ask
// again. The request is read from standard input, as bytes; the outcome is JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// pass hands over messages as the bytes that they are.
type pass struct{}

func (pass) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }

func (pass) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = nil
	return nil
}

func (pass) Name() string { return "proto" }

// outcome is how the calls ended. Latencies are those of calls that were answered well, Good how many of
// them were before the time was up.
type outcome struct {
	Made      int            `json:"made"`
	Good      int            `json:"good"`
	Codes     map[string]int `json:"codes"`
	Latencies []float64      `json:"latencies_s"`
}

type flood struct {
	connections []*grpc.ClientConn
	method      string
	request     []byte
	deadline    time.Duration
	until       time.Time
	calls       sync.WaitGroup
	mutex       sync.Mutex
	outcome     outcome
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	address := flag.String("address", "", "host:port of the server")
	rate := flag.Float64("rate", 0, "calls a second")
	callers := flag.Int("callers", 0, "callers that wait for each answer")
	lasts := flag.Duration("for", 5*time.Second, "how long calls are made")
	method := flag.String("method", "", "/package.Service/Method")
	connections := flag.Int("connections", 1, "connections that share the calls")
	deadline := flag.Duration("deadline", time.Second, "of each call")
	flag.Parse()
	if (*rate > 0) == (*callers > 0) {
		return errors.New("give one of -rate and -callers")
	}
	request, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	f := &flood{method: *method, request: request, deadline: *deadline, outcome: outcome{Codes: map[string]int{}}}
	for range *connections {
		connection, err := connect(*address)
		if err != nil {
			return err
		}
		defer func() { _ = connection.Close() }()
		f.connections = append(f.connections, connection)
	}
	f.until = time.Now().Add(*lasts)
	if *rate > 0 {
		f.atRate(*rate)
	} else {
		f.byCallers(*callers)
	}
	f.calls.Wait()
	return json.NewEncoder(os.Stdout).Encode(f.outcome)
}

func connect(address string) (*grpc.ClientConn, error) {
	connection, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(pass{})))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	connection.Connect()
	for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
		if !connection.WaitForStateChange(ctx, state) {
			return nil, fmt.Errorf("no connection to %s", address)
		}
	}
	return connection, nil
}

func (f *flood) atRate(rate float64) {
	began, made := time.Now(), 0
	for time.Now().Before(f.until) {
		for due := int(time.Since(began).Seconds() * rate); made < due; made++ {
			connection := f.connections[made%len(f.connections)]
			f.calls.Go(func() { f.call(connection) })
		}
		time.Sleep(time.Millisecond)
	}
}

func (f *flood) byCallers(callers int) {
	for i := range callers {
		connection := f.connections[i%len(f.connections)]
		f.calls.Go(func() {
			for time.Now().Before(f.until) {
				f.call(connection)
			}
		})
	}
}

func (f *flood) call(connection *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), f.deadline)
	defer cancel()
	var response []byte
	began := time.Now()
	err := connection.Invoke(ctx, f.method, &f.request, &response)
	ended := time.Now()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.outcome.Made++
	if err != nil {
		f.outcome.Codes[code.Code_name[int32(status.Code(err))]]++
		return
	}
	if !ended.After(f.until) {
		f.outcome.Good++
	}
	f.outcome.Latencies = append(f.outcome.Latencies, ended.Sub(began).Seconds())
}
