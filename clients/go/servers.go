package memory

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// passedOver is how long a failed server is tried last. Doubled, its namespaces stay twice as long at
	// servers that have to load them, and calls meet a hanging server half as often.
	passedOver = 5 * time.Second

	attemptDelayFirst = 100 * time.Millisecond
	attemptDelayMax   = 2 * time.Second
)

// away are the reasons of UNAVAILABLE for which to try another server; empty: no server answered. Other
// reasons, such as LLM_UNAVAILABLE, concern what all servers share.
var away = map[Reason]bool{"": true, ReasonShuttingDown: true, ReasonStorageUnavailable: true}

// servers replaces the channel to one server by channels to several over the same records: each call
// goes to its namespace's preferred server, and to the next one while that is unavailable.
type servers struct {
	addresses    []string
	channels     []*grpc.ClientConn
	maxAttempts  int
	waitForReady bool
	closed       atomic.Bool
	// answered reports that a server has answered a call.
	answered atomic.Bool

	mutex           sync.Mutex
	passedOverUntil []time.Time
}

func dialServers(addresses []string, settings *dialSettings) (*servers, error) {
	s := &servers{
		addresses:       addresses,
		maxAttempts:     settings.maxAttempts,
		waitForReady:    settings.waitForReady,
		passedOverUntil: make([]time.Time, len(addresses)),
	}
	for _, address := range addresses {
		channel, err := grpc.NewClient(address, settings.grpcOptions(address, true)...)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.channels = append(s.channels, channel)
	}
	return s, nil
}

// Close ends all calls and closes the connections.
func (s *servers) Close() error {
	s.closed.Store(true)
	var failures []error
	for _, channel := range s.channels {
		failures = append(failures, channel.Close())
	}
	return errors.Join(failures...)
}

// Invoke makes a call that has one response.
func (s *servers) Invoke(ctx context.Context, method string, request, response any, options ...grpc.CallOption) error {
	at := s.begin(ctx, method, namespaceIn(request))
	options = withoutWaiting(options)
	for {
		err := s.channels[at.server()].Invoke(ctx, method, request, response, options...)
		if err == nil {
			s.answered.Store(true)
			return nil
		}
		if !at.again(ctx, err) {
			return err
		}
	}
}

// NewStream begins a call that has many responses or many requests. It is sent with its first request,
// which names the namespace.
func (s *servers) NewStream(
	ctx context.Context, shape *grpc.StreamDesc, method string, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return &movingStream{ctx: ctx, servers: s, shape: shape, method: method, options: withoutWaiting(options)}, nil
}

// withoutWaiting makes calls fail at once if a server cannot be reached, so that the others are tried.
func withoutWaiting(options []grpc.CallOption) []grpc.CallOption {
	return append(slices.Clip(options), grpc.WaitForReady(false))
}

// order returns the servers for a namespace in order; those that failed recently are last.
func (s *servers) order(namespace string) []int {
	order := orderOf(s.addresses, namespace)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := time.Now()
	slices.SortStableFunc(order, func(a, b int) int {
		return s.rank(a, now) - s.rank(b, now)
	})
	return order
}

func (s *servers) rank(server int, now time.Time) int {
	if s.passedOverUntil[server].After(now) {
		return 1
	}
	return 0
}

func (s *servers) failed(server int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.passedOverUntil[server] = time.Now().Add(passedOver)
}

// attempts are those of one call at the servers.
type attempts struct {
	servers *servers
	way     []int
	left    int
	// waits reports that attempts which no server answers do not count.
	waits  bool
	moves  int
	pauses int
}

// begin begins with the first server of a namespace. If a call may be tried more than once, each server is
// tried at least once.
func (s *servers) begin(ctx context.Context, method string, namespace string) *attempts {
	at := &attempts{servers: s, way: s.order(namespace), left: 1}
	name := protoreflect.Name(method[strings.LastIndex(method, "/")+1:])
	if s.maxAttempts > 1 && !neverRetried[name] {
		at.left = max(s.maxAttempts, len(at.way))
		_, limited := ctx.Deadline()
		at.waits = s.waitForReady || limited && s.answered.Load()
	}
	return at
}

// server returns the server for the next attempt.
func (a *attempts) server() int { return a.way[a.moves%len(a.way)] }

// again notes a failed attempt and reports whether there is another, after waiting until it is due.
func (a *attempts) again(ctx context.Context, err error) bool {
	delay, ok := a.delayAfter(ctx, err)
	if !ok || a.servers.closed.Load() {
		return false
	}
	if deadline, limited := ctx.Deadline(); limited && time.Until(deadline) <= delay {
		return false
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// delayAfter notes a failed attempt and returns how long to wait before the next. False: there is none.
func (a *attempts) delayAfter(ctx context.Context, err error) (time.Duration, bool) {
	code := status.Code(err)
	if ctx.Err() != nil || code != codes.Unavailable && code != codes.Canceled {
		return 0, false
	}
	var failure *Error
	errors.As(errorFrom(err), &failure)
	isAway := away[failure.Reason]
	if isAway {
		a.servers.failed(a.server())
	}
	if !a.waits || failure.Reason != "" {
		a.left--
	}
	if a.left <= 0 {
		return 0, false
	}
	if isAway {
		a.moves++
		if a.moves < len(a.way) {
			return 0, true
		}
	}
	delay := min(attemptDelayMax, attemptDelayFirst<<min(a.pauses, 10))
	a.pauses++
	// Spread out, so that clients do not all return at once after a restart of the servers.
	return time.Duration(float64(delay) * (0.8 + 0.4*rand.Float64())), true
}

// movingStream is a call with many messages that tries one server after the other until a response comes.
type movingStream struct {
	grpc.ClientStream // Nil before the first request.

	ctx      context.Context
	servers  *servers
	shape    *grpc.StreamDesc
	method   string
	options  []grpc.CallOption
	at       *attempts
	request  any
	hasBegun bool
}

func (m *movingStream) Context() context.Context { return m.ctx }

// SendMsg sends a request. The first one chooses the server, by its namespace.
func (m *movingStream) SendMsg(request any) error {
	if m.ClientStream != nil {
		return m.ClientStream.SendMsg(request)
	}
	m.at = m.servers.begin(m.ctx, m.method, namespaceIn(request))
	m.request = request
	return m.open()
}

func (m *movingStream) open() error {
	for {
		err := m.openOnce()
		if err == nil || !m.at.again(m.ctx, err) {
			return err
		}
	}
}

func (m *movingStream) openOnce() error {
	opened, err := m.servers.channels[m.at.server()].NewStream(m.ctx, m.shape, m.method, m.options...)
	if err != nil {
		return err
	}
	m.ClientStream = opened
	err = opened.SendMsg(m.request)
	if err == nil && !m.shape.ClientStreams {
		err = opened.CloseSend()
	}
	if errors.Is(err, io.EOF) {
		return nil // RecvMsg returns why the server ended the call.
	}
	return err
}

// CloseSend ends the requests. If there is only one, sending it has already ended them.
func (m *movingStream) CloseSend() error {
	if !m.shape.ClientStreams {
		return nil
	}
	return m.ClientStream.CloseSend()
}

// RecvMsg receives a response, from another server if none has come yet.
func (m *movingStream) RecvMsg(response any) error {
	for {
		err := m.ClientStream.RecvMsg(response)
		if err == nil {
			m.hasBegun = true
			return nil
		}
		if errors.Is(err, io.EOF) {
			return err
		}
		if m.hasBegun {
			m.at.delayAfter(m.ctx, err)
			return err
		}
		if !m.at.again(m.ctx, err) {
			return err
		}
		if err := m.open(); err != nil {
			return err
		}
	}
}
