package main

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
	"github.com/memory-service/memory-service/clients/go/llms"
)

// each converts the elements of a list.
func each[N, P any](elements []N, convert func(N) P) []P {
	var converted []P
	for _, element := range elements {
		converted = append(converted, convert(element))
	}
	return converted
}

// timeOf converts a time; the zero time is none.
func timeOf(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}

// durationOf converts a duration; zero is none.
func durationOf(duration time.Duration) *durationpb.Duration {
	if duration == 0 {
		return nil
	}
	return durationpb.New(duration)
}

// objectOf converts JSON values as the client returns them; nil is none.
func objectOf(data map[string]any) *structpb.Struct {
	if data == nil {
		return nil
	}
	object, err := structpb.NewStruct(data)
	if err != nil {
		panic(fmt.Sprintf("the client returned what is no JSON: %v", err))
	}
	return object
}

// valueOf converts a JSON value as the client returns it; nil is none, or null.
func valueOf(value any) *structpb.Value {
	if value == nil {
		return nil
	}
	if _, isNull := value.(llms.Null); isNull {
		return structpb.NewNullValue()
	}
	converted, err := structpb.NewValue(value)
	if err != nil {
		panic(fmt.Sprintf("the client returned what is no JSON: %v", err))
	}
	return converted
}

// enumerated is an enumeration of the protos.
type enumerated interface {
	~int32
	Descriptor() protoreflect.EnumDescriptor
}

// enumOf returns the number of a value as the client returns it; for an empty one, the unspecified number.
func enumOf[E enumerated, S ~string](text S) E {
	var unspecified E
	if text == "" {
		return unspecified
	}
	descriptor := unspecified.Descriptor()
	name := enumPrefix(descriptor) + strings.ToUpper(string(text))
	value := descriptor.Values().ByName(protoreflect.Name(name))
	if value == nil {
		panic(fmt.Sprintf("the client returned %q, which is no %s", text, descriptor.Name()))
	}
	return E(value.Number())
}

func degradedOf(degraded []memory.Degradation) []*memoryv1.Degradation {
	return each(degraded, func(entry memory.Degradation) *memoryv1.Degradation {
		return &memoryv1.Degradation{
			Reason: enumOf[memoryv1.DegradationReason](entry.Reason), Message: entry.Message,
		}
	})
}

// explanationOf converts the shares of a score; an explanation without any is none.
func explanationOf(shares []memory.Contribution) *memoryv1.Explanation {
	if len(shares) == 0 {
		return nil
	}
	return &memoryv1.Explanation{
		Contributions: each(shares, func(share memory.Contribution) *memoryv1.Contribution {
			return &memoryv1.Contribution{
				Channel:      share.Channel,
				RawScore:     share.RawScore,
				Weight:       share.Weight,
				Scale:        share.Scale,
				Contribution: share.Contribution,
			}
		}),
	}
}

func failuresOf(failures []memory.DecisionFailure) []*memoryv1.DecisionFailure {
	return each(failures, func(failure memory.DecisionFailure) *memoryv1.DecisionFailure {
		return &memoryv1.DecisionFailure{
			Reason:  enumOf[memoryv1.DecisionFailureReason](failure.Reason),
			Message: failure.Message,
			Key:     failure.Key,
		}
	})
}

func usageOf(usage *memory.LLMUsage) *memoryv1.LlmUsage {
	if usage == nil {
		return nil
	}
	return &memoryv1.LlmUsage{
		Model:        usage.Model,
		CallCount:    int32(usage.CallCount),
		CachedCount:  int32(usage.CachedCount),
		InputTokens:  usage.InputTokens,
		OutputTokens: usage.OutputTokens,
	}
}
