package memory

import (
	"context"
	"errors"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// invoke makes a call that has one response, with the client's timeout if ctx has no deadline.
func invoke[Q proto.Message, R any](
	ctx context.Context, c *Client, call func(context.Context, Q, ...grpc.CallOption) (R, error), request Q,
) (R, error) {
	if _, ok := ctx.Deadline(); !ok && c.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		ctx = limited
	}
	return invokeUnlimited(ctx, c, call, request)
}

// invokeUnlimited makes a call that has one response, with no deadline but that of ctx.
func invokeUnlimited[Q proto.Message, R any](
	ctx context.Context, c *Client, call func(context.Context, Q, ...grpc.CallOption) (R, error), request Q,
) (R, error) {
	var options []grpc.CallOption
	if _, limited := ctx.Deadline(); limited && c.answered.Load() {
		// The address is right, then: the server is being restarted, and will be back.
		options = append(options, grpc.WaitForReady(true))
	}
	sent, err := c.outgoing(ctx, namespaceIn(request))
	if err != nil {
		var none R
		return none, err
	}
	response, err := call(sent, request, options...)
	if err != nil {
		return response, c.callError(ctx, err, request)
	}
	c.answered.Store(true)
	return response, nil
}

// outgoing adds the client's headers to a call, its namespace and the token of now.
func (c *Client) outgoing(ctx context.Context, namespace string) (context.Context, error) {
	if headers := append(headerOf(namespace), c.headers...); len(headers) > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, headers...)
	}
	if c.tokenSource == nil {
		return ctx, nil
	}
	token, err := c.tokenSource(ctx)
	if err != nil {
		return nil, &Error{Code: "UNAUTHENTICATED", Message: "no token: " + err.Error(), cause: err}
	}
	if !tokenText.MatchString(token) {
		return nil, &Error{Code: "UNAUTHENTICATED", Message: "the token is no printable ASCII text without spaces"}
	}
	return metadata.AppendToOutgoingContext(ctx, bearer(token)...), nil
}

// callError turns the error of a call into this package's own; ctx is the caller's, request what was to
// be sent.
func (c *Client) callError(ctx context.Context, err error, request proto.Message) error {
	if c.closed.Load() {
		return closedError()
	}
	if status.Code(err) == codes.Canceled && ctx.Err() == nil {
		// The call was not cancelled on this side: the server has gone, or something on the way to it.
		return &Error{Code: "UNAVAILABLE", Message: "the call was ended: " + status.Convert(err).Message()}
	}
	own := errorFrom(err)
	if request != nil && errors.Is(own, ErrInternal) {
		// gRPC calls a text that is not UTF-8 an internal error.
		if _, unwritable := proto.Marshal(request); unwritable != nil {
			return invalidArgument("", unwritable.Error())
		}
	}
	return own
}

// paged yields the entries of all pages of an answer, each of which is fetched when it is needed. An
// error is yielded once, as the last. fetch gets one page; the token of the first is empty.
func paged[T any](fetch func(pageToken string) (entries []T, nextPageToken string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		token := ""
		for {
			entries, next, err := fetch(token)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, entry := range entries {
				if !yield(entry, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			token = next
		}
	}
}
