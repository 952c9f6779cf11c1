package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// Errors to match with [errors.Is]. Each stands for one code of [Error].
var (
	// ErrInvalidArgument: the request is invalid, and nothing was written; Field names the invalid field.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrNotFound: no such item, state, memory, document or namespace; the Reason shows which.
	ErrNotFound = errors.New("not found")
	// ErrAlreadyExists: an item or document with this id already exists.
	ErrAlreadyExists = errors.New("already exists")
	// ErrConflict: another client wrote first. Read again, decide again, write again.
	ErrConflict = errors.New("conflict")
	// ErrFailedPrecondition: not possible in the current state of the server or the namespace.
	ErrFailedPrecondition = errors.New("failed precondition")
	// ErrLimitExceeded: too large, or too many calls at once; then retry after RetryAfter.
	ErrLimitExceeded = errors.New("limit exceeded")
	// ErrUnsupported: this server, or this implementation of [Memory], does not support it.
	ErrUnsupported = errors.New("unsupported")
	// ErrUnavailable: the server cannot be reached, or cannot answer now. Try again later.
	ErrUnavailable = errors.New("unavailable")
	// ErrDeadlineExceeded: no answer arrived in time. Such an error is also [context.DeadlineExceeded].
	ErrDeadlineExceeded = errors.New("deadline exceeded")
	// ErrUnauthenticated: no credential, or an invalid one.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrPermissionDenied: the credential does not allow the call on this namespace.
	ErrPermissionDenied = errors.New("permission denied")
	// ErrInternal: the server failed unexpectedly; Metadata["incident"] identifies the entry in its log.
	ErrInternal = errors.New("internal error")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("the client is closed")
)

var errorOfCode = map[string]error{
	"INVALID_ARGUMENT":    ErrInvalidArgument,
	"NOT_FOUND":           ErrNotFound,
	"ALREADY_EXISTS":      ErrAlreadyExists,
	"ABORTED":             ErrConflict,
	"FAILED_PRECONDITION": ErrFailedPrecondition,
	"RESOURCE_EXHAUSTED":  ErrLimitExceeded,
	"UNIMPLEMENTED":       ErrUnsupported,
	"UNAVAILABLE":         ErrUnavailable,
	"DEADLINE_EXCEEDED":   ErrDeadlineExceeded,
	"UNAUTHENTICATED":     ErrUnauthenticated,
	"PERMISSION_DENIED":   ErrPermissionDenied,
	"INTERNAL":            ErrInternal,
}

// Error is why a call failed. Find it with [errors.As], or test for one of the Err values of this
// package with [errors.Is].
type Error struct {
	// Code is the standard code, such as "NOT_FOUND".
	Code string
	// Reason is the precise cause, for programs. Empty: the error did not come from the server itself.
	Reason Reason
	// Message is a sentence for humans. It may change from release to release.
	Message string
	// Field of the request that is invalid, such as "item.content". Empty: none.
	Field string
	// Metadata has details of the error; its keys depend on the reason. Nil: none.
	Metadata map[string]string
	// RetryAfter is when a retry may succeed. 0: not reported.
	RetryAfter time.Duration

	cause error
}

// Error returns a sentence for humans.
func (e *Error) Error() string {
	kind := e.Code
	if e.Reason != "" {
		kind = string(e.Reason)
	}
	return fmt.Sprintf("memory service: %s (%s)", e.Message, kind)
}

// Is reports whether target is the Err value for this error's code.
func (e *Error) Is(target error) bool {
	return target != nil && errorOfCode[e.Code] == target
}

// Unwrap returns what ended the call on this side: [context.Canceled], [context.DeadlineExceeded],
// [ErrClosed], or the error of a [TokenSource]. Nil: none of these did.
func (e *Error) Unwrap() error {
	return e.cause
}

const (
	errorDomain  = "memory_service.v1"
	reasonPrefix = "ERROR_REASON_"
)

// errorFrom converts an error of gRPC to this package's. This package's errors and nil are unchanged.
func errorFrom(err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	state := status.FromContextError(err)
	if reported, ok := status.FromError(err); ok {
		state = reported
	}
	failure := &Error{Code: code.Code(state.Code()).String(), Message: state.Message()}
	switch failure.Code {
	case "CANCELLED":
		failure.cause = context.Canceled
	case "DEADLINE_EXCEEDED":
		failure.cause = context.DeadlineExceeded
	}
	for _, detail := range state.Details() {
		failure.add(detail)
	}
	if failure.Field == "" {
		failure.Field = failure.Metadata["field"]
	}
	return failure
}

// add sets the fields that a detail has. Details of unknown kinds are omitted: code and message still
// describe the error.
func (e *Error) add(detail any) {
	switch detail := detail.(type) {
	case *errdetails.ErrorInfo:
		if detail.GetDomain() == errorDomain { // Otherwise the reason is a proxy's.
			e.Reason = Reason(strings.TrimPrefix(detail.GetReason(), reasonPrefix))
			e.Metadata = detail.GetMetadata()
		}
	case *errdetails.BadRequest:
		if violations := detail.GetFieldViolations(); len(violations) > 0 && e.Field == "" {
			e.Field = violations[0].GetField()
		}
	case *errdetails.RetryInfo:
		e.RetryAfter = detail.GetRetryDelay().AsDuration()
	}
}

// invalidArgument returns the error for a value that this client refuses without asking the server.
func invalidArgument(field, message string) error {
	return &Error{
		Code:     "INVALID_ARGUMENT",
		Reason:   ReasonInvalidField,
		Message:  message,
		Field:    field,
		Metadata: map[string]string{"field": field},
	}
}

func closedError() error {
	return &Error{Code: "CANCELLED", Message: ErrClosed.Error(), cause: ErrClosed}
}
