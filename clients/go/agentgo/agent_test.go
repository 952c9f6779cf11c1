package agentgo_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/oopslink/agent-go/pkg/core/agent"
	"github.com/oopslink/agent-go/pkg/core/agent/behavior_patterns"
	agentcontext "github.com/oopslink/agent-go/pkg/core/agent/context"
	"github.com/oopslink/agent-go/pkg/core/agent/state"
	agentmemory "github.com/oopslink/agent-go/pkg/core/memory"
	"github.com/oopslink/agent-go/pkg/core/tools"
	"github.com/oopslink/agent-go/pkg/support/eventbus"
	"github.com/oopslink/agent-go/pkg/support/llms"

	"github.com/memory-service/memory-service/clients/go/agentgo"
)

var testModel = &llms.Model{ModelId: llms.ModelId{Provider: "scripted", ID: "script-1"}}

// script is a language model that gives scripted answers and records the requests.
type script struct {
	answers [][]llms.Part
	asked   [][]string
}

func (s *script) Close() error                { return nil }
func (s *script) IsRetryableError(error) bool { return false }

func (s *script) NewChat(string, *llms.Model) (llms.Chat, error) { return s, nil }

func (s *script) Send(
	_ context.Context, messages []*llms.Message, _ ...llms.ChatOption,
) (llms.ChatResponseIterator, error) {
	if len(s.asked) == len(s.answers) {
		return nil, fmt.Errorf("the script has only %d answers", len(s.answers))
	}
	turn := len(s.asked)
	s.asked = append(s.asked, said(messages))
	response := &llms.ChatResponse{
		Message: llms.Message{
			MessageId: fmt.Sprintf("answer-%d", turn),
			Creator:   llms.MessageCreator{Role: llms.MessageRoleAssistant},
			Model:     testModel.ModelId,
			Parts:     s.answers[turn],
		},
		FinishReason: llms.FinishReasonNormalEnd,
	}
	return func(yield func(*llms.ChatResponse, error) bool) { yield(response, nil) }, nil
}

// said renders messages without their times, which differ between runs.
func said(messages []*llms.Message) []string {
	lines := []string{}
	for _, message := range messages {
		line := fmt.Sprintf("%s %q %s:", message.Creator.String(), message.MessageId, message.Model.String())
		for _, part := range message.Parts {
			line += fmt.Sprintf(" %T%+v", part, reflect.ValueOf(part).Elem())
		}
		lines = append(lines, line)
	}
	return lines
}

// trains is a tool that the agent calls by itself.
type trains struct{}

func (trains) Descriptor() *llms.ToolDescriptor {
	return &llms.ToolDescriptor{Name: "trains", Description: "finds trains"}
}

func (trains) Call(_ context.Context, call *llms.ToolCall) (*llms.ToolCallResult, error) {
	departures := []any{map[string]any{"to": call.Arguments["to"], "at": "12:04", "price": 31.5}}
	return &llms.ToolCallResult{
		ToolCallId: call.ToolCallId, Name: call.Name, Result: map[string]any{"departures": departures},
	}, nil
}

// booking is a tool that another program calls: the agent asks for it by an event.
type booking struct{ trains }

func (booking) Descriptor() *llms.ToolDescriptor {
	return &llms.ToolDescriptor{Name: "book", Description: "books a train"}
}

// conversation is a running agent of agent-go.
type conversation struct {
	t      *testing.T
	input  chan<- *eventbus.Event
	output <-chan *eventbus.Event
}

func converse(
	t *testing.T, model *script, memory agentmemory.Memory, agentState agent.AgentState,
) *conversation {
	t.Helper()
	behavior, err := behavior_patterns.NewGenericPattern()
	must(t, err)
	agentContext := agentcontext.NewRuleBaseContext(
		"ada", "You find trains.", model, testModel, behavior, memory, agentState, nil,
		tools.OfTools(trains{}, booking{}), agentcontext.ContextRules{AutoTools: []string{"trains"}})
	theAgent, err := agent.NewGenericAgent(agentContext, behavior, model, testModel, nil)
	must(t, err)
	input, output, err := theAgent.Run(&agent.RunContext{SessionId: "trip", Context: t.Context()})
	must(t, err)
	return &conversation{t, input, output}
}

// tell sends an event to the agent and returns its events up to the end of its response.
func (c *conversation) tell(event *eventbus.Event) []string {
	c.t.Helper()
	c.input <- event
	events := []string{}
	patience := time.After(time.Minute)
	for {
		select {
		case <-patience:
			c.t.Fatalf("the agent did not end its response: %q", events)
		case event := <-c.output:
			switch data := event.Data.(type) {
			case *agent.AgentMessage:
				events = append(events, said([]*llms.Message{data.Message})...)
			case *agent.ExternalAction:
				events = append(events, fmt.Sprintf("call %+v", *data.ToolCall))
			case *agent.AgentResponseEnd:
				return append(events, fmt.Sprintf("end %s %v", data.FinishReason, data.Error))
			}
		}
	}
}

func ask(question string) *eventbus.Event {
	return agent.NewUserRequestEvent(&agent.UserRequest{Message: question})
}

func text(words string) []llms.Part { return []llms.Part{&llms.TextPart{Text: words}} }

// firstDay is a conversation with a tool that the agent calls and one that it asks others to call.
func firstDay(c *conversation) [][]string {
	booked := &llms.ToolCallResult{
		ToolCallId: "call-2", Name: "book", Result: map[string]any{"seat": 42.0, "paid": true, "note": nil},
	}
	return [][]string{
		c.tell(ask("When is the next train to Lyon? 🚆")),
		c.tell(ask("Book it.")),
		c.tell(agent.NewToolCallResultEvent(booked)),
	}
}

func firstAnswers() [][]llms.Part {
	return [][]llms.Part{
		{
			&llms.TextPart{Text: "I will look."},
			&llms.ToolCall{ToolCallId: "call-1", Name: "trains", Arguments: map[string]any{"to": "Lyon"}},
		},
		text("At 12:04."),
		{&llms.ToolCall{ToolCallId: "call-2", Name: "book", Arguments: map[string]any{}}},
		text("Seat 42 is yours."),
	}
}

// An agent says and does the same with either memory, and with this one it still knows everything
// after a restart.
func TestAnAgentBecomesDurable(t *testing.T) {
	simple, simpleState := agentmemory.NewSimpleMemory(), state.NewInMemoryState()
	want := &script{answers: firstAnswers()}
	wantEvents := firstDay(converse(t, want, simple, simpleState))
	must(t, simpleState.Put("seat", 42))

	dataDir := t.TempDir()
	server := startServer(t, dataDir)
	client := dial(t, server.address, "ada")
	durableState := agentgo.NewState(client)
	got := &script{answers: firstAnswers()}
	gotEvents := firstDay(converse(t, got, agentgo.NewMemory(client), durableState))
	must(t, durableState.Put("seat", 42))
	equal(t, "what the agent did", gotEvents, wantEvents)
	equal(t, "what the model was asked", got.asked, want.asked)

	server.terminate()
	client = dial(t, startServer(t, dataDir).address, "ada")
	simple2, got2 := &script{answers: [][]llms.Part{text("To Lyon.")}}, &script{answers: [][]llms.Part{text("To Lyon.")}}
	question := "Where do I go?"
	wantEnd := converse(t, simple2, simple, simpleState).tell(ask(question))
	gotEnd := converse(t, got2, agentgo.NewMemory(client), agentgo.NewState(client)).tell(ask(question))
	equal(t, "what the agent did after the restart", gotEnd, wantEnd)
	equal(t, "what the model was asked after the restart", got2.asked, simple2.asked)
	seat, err := agentgo.NewState(client).Get("seat")
	must(t, err)
	equal(t, "the state after the restart", seat, any(42.0))
}
