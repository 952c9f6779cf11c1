package memory

import (
	"strings"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// DecidedBy is the decider.
type DecidedBy string

// The deciders.
const (
	// DecidedByNobody: no decision was needed. In requests: the language model if there is one and it
	// answers, else rules.
	DecidedByNobody DecidedBy = ""
	// DecidedByLLM is the language model. In requests: only it; if it fails, the call fails with
	// [ReasonLLMRequired] or [ReasonLLMUnavailable], and nothing is written.
	DecidedByLLM DecidedBy = "llm"
	// DecidedByRules are the server's rules. In requests: only they; no language model is called.
	DecidedByRules DecidedBy = "rules"
)

// Decision has the facts about a decision: who made it, what failed on the way, what it cost.
type Decision struct {
	// DecidedBy is the decider. DecidedByRules also if rules decided only a part.
	DecidedBy DecidedBy
	// Reason for the decision, for humans. At most 500 characters.
	Reason string
	// Failures on the way that did not prevent the decision. Empty: none.
	Failures []DecisionFailure
	// LLMUsage is what the answer cost. Nil: no language model was called.
	LLMUsage *LLMUsage
	// Degraded lists what the server could not do for this answer. Empty: it did everything.
	Degraded []Degradation
	// Revision of the namespace that the answer reflects; after the write, if there was one.
	Revision int64
}

// DecisionFailure is a failure on the way to a decision that did not prevent it.
type DecisionFailure struct {
	// Reason of the failure, for programs, such as "LLM_TIMEOUT" or "KEY_EXISTS".
	Reason string
	// Message for humans.
	Message string
	// Key of the state, or id of the memory, that it concerns. Empty: the whole decision.
	Key string
}

// LLMUsage reports the use of the language model for an answer.
type LLMUsage struct {
	// Model that was called, as "provider:model". Empty: none.
	Model string
	// CallCount is the number of calls, retries and repairs included.
	CallCount int
	// CachedCount is the number of questions answered from the cache instead.
	CachedCount int
	// InputTokens of all calls, as the provider counts them. 0: none, or not reported.
	InputTokens int64
	// OutputTokens of all calls, as the provider counts them. 0: none, or not reported.
	OutputTokens int64
}

// decided has the fields common to all responses with a decision.
type decided interface {
	GetDecidedBy() memoryv1.DecidedBy
	GetFailures() []*memoryv1.DecisionFailure
	GetLlmUsage() *memoryv1.LlmUsage
	GetDegraded() []*memoryv1.Degradation
	GetRevision() int64
}

// decisionTo converts the decision of a response; reason is that of the whole answer.
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

// each converts the elements of a list. An empty one becomes nil.
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
