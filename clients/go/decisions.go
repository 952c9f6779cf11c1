package memory

import (
	"strings"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// DecidedBy says what decided, or in a request what should decide.
type DecidedBy string

// The deciders.
const (
	// DecidedByNobody: there was nothing to do. In requests, the language model if there is one and it
	// answers, else rules.
	DecidedByNobody DecidedBy = ""
	// DecidedByLLM is the language model. In requests: it alone; where it fails the call fails with
	// [ReasonLLMRequired] or [ReasonLLMUnavailable], and nothing is written.
	DecidedByLLM DecidedBy = "llm"
	// DecidedByRules are the server's rules. In requests: they alone; no language model is asked.
	DecidedByRules DecidedBy = "rules"
)

// Decision is what there is to say of a decision: who made it, what went wrong on the way, what it
// cost.
type Decision struct {
	// DecidedBy says what decided. DecidedByRules also if rules decided only a part.
	DecidedBy DecidedBy
	// Reason for the decision, for a human. At most 500 characters.
	Reason string
	// Failures on the way, which were got over. Empty: none.
	Failures []DecisionFailure
	// LLMUsage is what the answer cost. Nil: no language model was asked.
	LLMUsage *LLMUsage
	// Degraded names what the server could not do for this answer. Empty: nothing.
	Degraded []Degradation
	// Revision of the namespace that the answer reflects; after the write, if there was one.
	Revision int64
}

// DecisionFailure is something that went wrong on the way to a decision, and was got over.
type DecisionFailure struct {
	// Reason that it went wrong, such as "LLM_TIMEOUT" or "KEY_EXISTS", for programs.
	Reason string
	// Message for a human.
	Message string
	// Key of the state, or id of the memory, that it is about. Empty: the whole decision.
	Key string
}

// LLMUsage reports what an answer cost at the language model.
type LLMUsage struct {
	// Model that was asked, as "provider:model". Empty: none was.
	Model string
	// CallCount is how many times it was called, retries and repairs included.
	CallCount int
	// CachedCount is how many questions were answered from the cache instead.
	CachedCount int
	// InputTokens of all calls, as the provider counts them. 0: none, or not reported.
	InputTokens int64
	// OutputTokens of all calls, as the provider counts them. 0: none, or not reported.
	OutputTokens int64
}

// decided is the part of a response that every answer with a decision has.
type decided interface {
	GetDecidedBy() memoryv1.DecidedBy
	GetFailures() []*memoryv1.DecisionFailure
	GetLlmUsage() *memoryv1.LlmUsage
	GetDegraded() []*memoryv1.Degradation
	GetRevision() int64
}

// decisionTo converts what an answer says of its decision; reason is the one for the whole of it.
func decisionTo(response decided, reason string) Decision {
	return Decision{
		DecidedBy: decidedByTo(response.GetDecidedBy()),
		Reason:    reason,
		Failures:  each(response.GetFailures(), failureTo),
		LLMUsage:  usageTo(response.GetLlmUsage()),
		Degraded:  degradedTo(response.GetDegraded()),
		Revision:  response.GetRevision(),
	}
}

func decidedByTo(decidedBy memoryv1.DecidedBy) DecidedBy {
	return enumTo[DecidedBy](decidedBy, "DECIDED_BY_")
}

func decidedByFrom(decidedBy DecidedBy) (memoryv1.DecidedBy, error) {
	return enumFrom[memoryv1.DecidedBy](memoryv1.DecidedBy_value, "DECIDED_BY_", decidedBy, "decide_by")
}

func failureTo(failure *memoryv1.DecisionFailure) DecisionFailure {
	return DecisionFailure{
		Reason:  strings.TrimPrefix(failure.GetReason().String(), "DECISION_FAILURE_REASON_"),
		Message: failure.GetMessage(),
		Key:     failure.GetKey(),
	}
}

func usageTo(usage *memoryv1.LlmUsage) *LLMUsage {
	if usage == nil {
		return nil
	}
	return &LLMUsage{
		Model:        usage.GetModel(),
		CallCount:    int(usage.GetCallCount()),
		CachedCount:  int(usage.GetCachedCount()),
		InputTokens:  usage.GetInputTokens(),
		OutputTokens: usage.GetOutputTokens(),
	}
}

// each converts the elements of a list. Of an empty one it is nil.
func each[P, N any](elements []P, convert func(P) N) []N {
	var converted []N
	for _, element := range elements {
		converted = append(converted, convert(element))
	}
	return converted
}

// orDefaults returns the options of a call; nil stands for the defaults.
func orDefaults[T any](options *T) *T {
	if options == nil {
		return new(T)
	}
	return options
}
