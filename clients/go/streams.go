package memory

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// StreamOption sets an option of a watch or an export.
type StreamOption func(*streamSettings)

type streamSettings struct {
	afterRevision     *int64
	heartbeatInterval *durationpb.Duration
	giveUpAfter       time.Duration
	includeEmbeddings bool
}

// WithAfterRevision yields changes after a revision. 0: from the beginning. Without it, a watch begins
// now, and an export is complete.
func WithAfterRevision(revision int64) StreamOption {
	return func(s *streamSettings) { s.afterRevision = &revision }
}

// WithHeartbeatInterval sets how long the server may be silent, at least 100 ms. Without it: 15 s.
// Only for [Client.Watch].
func WithHeartbeatInterval(interval time.Duration) StreamOption {
	return func(s *streamSettings) { s.heartbeatInterval = durationpb.New(interval) }
}

// WithGiveUpAfter ends an iteration with [ErrUnavailable] if the server is unavailable for longer. 0:
// never. By default [Client.Watch] never gives up, and [Client.Export] does after a minute.
func WithGiveUpAfter(outage time.Duration) StreamOption {
	return func(s *streamSettings) { s.giveUpAfter = outage }
}

// WithExportedEmbeddings also exports the items' vectors. Only for [Client.Export].
func WithExportedEmbeddings() StreamOption {
	return func(s *streamSettings) { s.includeEmbeddings = true }
}

// event is one message of a stream that can be resumed.
type event[T any] struct {
	value T
	// isHeartbeat reports that there is no value.
	isHeartbeat bool
	// revision up to which everything has been sent, from which to resume.
	revision int64
	// key distinguishes this event from the others since that revision.
	key string
}

// stream yields the responses of a call that has many. Ending the iteration ends the call.
func stream[Q proto.Message, R any](
	ctx context.Context,
	c *Client,
	call func(context.Context, Q, ...grpc.CallOption) (grpc.ServerStreamingClient[R], error),
	request Q,
) iter.Seq2[*R, error] {
	return func(yield func(*R, error) bool) {
		ctx, err := c.outgoing(ctx, namespaceIn(request))
		if err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		responses, err := call(ctx, request)
		for err == nil {
			var response *R
			if response, err = responses.Recv(); err == nil && !yield(response, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(nil, c.callError(ctx, err, request))
		}
	}
}

const (
	resumeDelayFirst = 100 * time.Millisecond
	resumeDelayMax   = 5 * time.Second
)

// resumption is the position of a stream across its breaks. A break may fall between the events of one
// revision: the server then sends that revision again from its beginning, and accept skips the events
// that the caller has already got.
type resumption struct {
	position    *int64
	giveUpAfter time.Duration

	seen     map[string]bool
	breaks   int
	lastSign time.Time
}

// accept notes an event and reports whether it is new to the caller.
func (r *resumption) accept(revision int64, key string) bool {
	r.breaks = 0
	r.lastSign = time.Now()
	isNew := !r.seen[key]
	if r.position == nil || revision > *r.position {
		r.position = &revision
		r.seen = map[string]bool{}
	} else {
		r.seen[key] = true
	}
	return isNew
}

// delayAfterBreak returns how long to wait before the next attempt. False: give up. A stream that
// never began is given up at once, because the address is probably wrong.
func (r *resumption) delayAfterBreak() (time.Duration, bool) {
	if r.lastSign.IsZero() || r.giveUpAfter > 0 && time.Since(r.lastSign) > r.giveUpAfter {
		return 0, false
	}
	delay := min(resumeDelayMax, resumeDelayFirst<<min(r.breaks, 10))
	r.breaks++
	// Spread out, so that clients do not all return at once after a restart of the server.
	return time.Duration(float64(delay) * (0.8 + 0.4*rand.Float64())), true
}

// resumed yields the values of a stream that resumes where it broke. open begins the stream after a
// position; nil: where the server begins.
func resumed[T any](
	ctx context.Context, from resumption, open func(after *int64) iter.Seq2[event[T], error],
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		at := from // Each iteration starts from the beginning.
		at.seen = map[string]bool{}
		for {
			var failure error
			for received, err := range open(at.position) {
				if failure = err; err != nil {
					break
				}
				if at.accept(received.revision, received.key) && !received.isHeartbeat && !yield(received.value, nil) {
					return
				}
			}
			if failure == nil {
				return
			}
			if failure = waitAfter(ctx, &at, failure); failure != nil {
				var none T
				yield(none, failure)
				return
			}
		}
	}
}

// waitAfter waits until a broken stream may resume, or returns the reason why it may not.
func waitAfter(ctx context.Context, at *resumption, failure error) error {
	if !errors.Is(failure, ErrUnavailable) {
		return failure
	}
	delay, ok := at.delayAfterBreak()
	if !ok {
		return failure
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errorFrom(ctx.Err())
	}
}
