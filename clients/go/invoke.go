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
	if err := requireContext(ctx); err != nil {
		var none R
		return none, err
	}
	if _, ok := ctx.Deadline(); !ok && c.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		ctx = limited
	}
	return invokeUnlimited(ctx, c, call, request)
}

// invokeUnlimited makes a call that has one response, with no deadline except that of ctx.
func invokeUnlimited[Q proto.Message, R any](
	ctx context.Context, c *Client, call func(context.Context, Q, ...grpc.CallOption) (R, error), request Q,
) (R, error) {
	if err := requireContext(ctx); err != nil {
		var none R
		return none, err
	}
	var options []grpc.CallOption
	if _, limited := ctx.Deadline(); limited && c.answered.Load() {
		// The address is right, so the server is probably restarting.
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

// requireContext refuses a nil context, with which gRPC panics.
func requireContext(ctx context.Context) error {
	if ctx == nil {
		return invalidArgument("ctx", "ctx: must not be nil")
	}
	return nil
}

// outgoing adds the client's headers, the namespace and the current token to a call.
func (c *Client) outgoing(ctx context.Context, namespace string) (context.Context, error) {
	if err := requireContext(ctx); err != nil {
		return nil, err
	}
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
		return nil, &Error{Code: "UNAUTHENTICATED", Message: "the token must be printable ASCII text without spaces"}
	}
	return metadata.AppendToOutgoingContext(ctx, bearer(token)...), nil
}

// callError converts the error of a call to this package's; ctx is the caller's, request the one to be
// sent.
func (c *Client) callError(ctx context.Context, err error, request proto.Message) error {
	if c.closed.Load() {
		return closedError()
	}
	if status.Code(err) == codes.Canceled && ctx.Err() == nil {
		// This side did not cancel the call: the server or a proxy has shut down.
		return &Error{Code: "UNAVAILABLE", Message: "the call was ended: " + status.Convert(err).Message()}
	}
	own := errorFrom(err)
	if request != nil && errors.Is(own, ErrInternal) {
		// gRPC reports text that is not UTF-8 as an internal error.
		if field := invalidTextIn(request.ProtoReflect(), ""); field != "" {
			return invalidArgument(field, field+": the text is not valid UTF-8")
		}
	}
	return own
}

// paged yields the entries of all pages of an answer, each fetched when needed. An error is yielded
// once, as the last. fetch gets one page; the token of the first is empty.
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
