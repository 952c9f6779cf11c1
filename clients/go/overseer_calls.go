package memory

import (
	"context"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// CheckRelevance returns the state entries that a goal needs, with their values; the goal is what the agent
// will work on, in plain words. A key that does not exist is never returned. Nil options are the defaults.
//
// With DecidedByLLM it returns [ErrFailedPrecondition] if the server has no language model
// ([ReasonLLMRequired]), and [ErrUnavailable] if the model fails ([ReasonLLMUnavailable]).
func (c *Client) CheckRelevance(
	ctx context.Context, goal string, options *CheckRelevanceOptions,
) (*Relevance, error) {
	request, err := c.checkRelevanceRequest(goal, orDefaults(options))
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.overseer.CheckRelevance, request)
	if err != nil {
		return nil, err
	}
	return &Relevance{
		Decision:    decisionTo(response, response.GetReason()),
		Entries:     entriesTo(response.GetEntries()),
		Decisions:   each(response.GetDecisions(), keyDecisionTo),
		ContextText: response.GetContextText(),
		TokenCount:  int(response.GetTokenCount()),
		KeyCount:    response.GetKeyCount(),
	}, nil
}

func (c *Client) checkRelevanceRequest(
	goal string, options *CheckRelevanceOptions,
) (*memoryv1.CheckRelevanceRequest, error) {
	limit, err := optionalInt32From(options.Limit, "limit")
	if err != nil {
		return nil, err
	}
	maxTokens, err := optionalInt32From(options.MaxTokens, "max_tokens")
	if err != nil {
		return nil, err
	}
	maxCandidates, err := optionalInt32From(options.MaxCandidates, "max_candidates")
	if err != nil {
		return nil, err
	}
	decideBy, err := decidedByFrom(options.DecideBy)
	if err != nil {
		return nil, err
	}
	return &memoryv1.CheckRelevanceRequest{
		Namespace:     c.namespace,
		Goal:          goal,
		Limit:         limit,
		MaxTokens:     maxTokens,
		Pattern:       options.Pattern,
		MaxCandidates: maxCandidates,
		OmitValues:    options.OmitValues,
		DecideBy:      decideBy,
		Explain:       options.Explain,
	}, nil
}

// EvaluateForStorage decides whether a tool's result, any JSON value of at most 1 MiB, is worth keeping,
// and under which key; with Save set it also saves it. Nil options are the defaults. It takes
// [WithRequestID].
//
// With DecidedByLLM it returns [ErrFailedPrecondition] if the server has no language model
// ([ReasonLLMRequired]), and [ErrUnavailable] if the model fails ([ReasonLLMUnavailable]); then
// nothing is written.
func (c *Client) EvaluateForStorage(
	ctx context.Context, toolName string, result any, options *EvaluateForStorageOptions, write ...WriteOption,
) (*StorageDecision, error) {
	request, err := c.evaluateForStorageRequest(orDefaults(options), write)
	if err != nil {
		return nil, err
	}
	request.ToolName = toolName
	if request.Result, err = valueFrom(result, "result"); err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.overseer.EvaluateForStorage, request)
	if err != nil {
		return nil, err
	}
	return &StorageDecision{
		Decision:        decisionTo(response, response.GetReason()),
		ShouldSave:      response.GetShouldSave(),
		Key:             response.GetKey(),
		Saved:           response.GetSaved(),
		Entry:           entryTo(response.GetEntry()),
		Skipped:         response.GetSkipped(),
		Description:     response.GetDescription(),
		ExistingVersion: response.GetExistingVersion(),
	}, nil
}

func (c *Client) evaluateForStorageRequest(
	options *EvaluateForStorageOptions, write []WriteOption,
) (*memoryv1.EvaluateForStorageRequest, error) {
	settings, err := writeSettingsFrom(write)
	if err != nil {
		return nil, err
	}
	arguments, err := optionalStructFrom(options.Arguments, "arguments")
	if err != nil {
		return nil, err
	}
	decideBy, err := decidedByFrom(options.DecideBy)
	if err != nil {
		return nil, err
	}
	return &memoryv1.EvaluateForStorageRequest{
		Namespace: c.namespace,
		Goal:      options.Goal,
		Save:      options.Save,
		Arguments: arguments,
		IsError:   options.IsError,
		Key:       options.Key,
		Overwrite: options.Overwrite,
		Ttl:       durationFrom(options.TTL),
		DecideBy:  decideBy,
		RequestId: settings.requestID,
	}, nil
}

func keyDecisionTo(decision *memoryv1.KeyDecision) KeyDecision {
	return KeyDecision{
		Key:         decision.GetKey(),
		Verdict:     enumTo[KeyVerdict](decision.GetVerdict(), "KEY_VERDICT_"),
		DecidedBy:   decidedByTo(decision.GetDecidedBy()),
		Reason:      decision.GetReason(),
		Score:       decision.GetScore(),
		Explanation: explanationTo(decision.GetExplanation()),
	}
}
