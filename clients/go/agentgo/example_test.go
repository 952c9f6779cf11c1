package agentgo_test

import (
	"context"
	"fmt"
	"log"
	"os"

	agentmemory "github.com/oopslink/agent-go/pkg/core/memory"
	"github.com/oopslink/agent-go/pkg/support/llms"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/agentgo"
)

// Pass the memory to an agent in place of agent-go's own, for example as an argument of NewRuleBaseContext.
func ExampleNewMemory() {
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("ada"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	remembered := agentgo.NewMemory(client) // was: agentmemory.NewSimpleMemory()

	ctx := context.Background()
	for _, text := range []string{"I am Ada.", "I like tea.", "What do I like?"} {
		item := agentmemory.NewChatMessageMemoryItem(llms.NewUserMessage(text))
		if err := remembered.Add(ctx, item); err != nil {
			log.Fatal(err)
		}
	}
	newest, err := remembered.Retrieve(ctx, agentmemory.WithMaxLimit(2))
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range agentmemory.AsMessages(newest) {
		fmt.Println(message.Creator.Role, message.Parts[0].(*llms.TextPart).Text)
	}
	// Output:
	// user I like tea.
	// user What do I like?
}

// Sessions keep the conversations of one namespace apart.
func ExampleWithSession() {
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("bob"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	trip := agentgo.NewMemory(client, agentgo.WithSession("trip"))
	work := agentgo.NewMemory(client, agentgo.WithSession("work"))
	if err := trip.Reset(); err != nil { // The work is not affected.
		log.Fatal(err)
	}
	ctx := context.Background()
	for text, conversation := range map[string]agentmemory.Memory{"To Lyon, please.": trip, "Write a report.": work} {
		item := agentmemory.NewChatMessageMemoryItem(llms.NewUserMessage(text))
		if err := conversation.Add(ctx, item); err != nil {
			log.Fatal(err)
		}
	}
	items, err := trip.Retrieve(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range agentmemory.AsMessages(items) {
		fmt.Println(message.Parts[0].(*llms.TextPart).Text)
	}
	// Output:
	// To Lyon, please.
}

func ExampleNewState() {
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("ada"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	state := agentgo.NewState(client) // was: state.NewInMemoryState()
	if err := state.Put("plan", map[string]any{"step": 1}); err != nil {
		log.Fatal(err)
	}
	plan, err := state.Get("plan")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan)
	// Output:
	// map[step:1]
}
