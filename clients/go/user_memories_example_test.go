package memory_test

import (
	"context"
	"fmt"
	"log"
	"os"

	memory "github.com/memory-service/memory-service/clients/go"
)

func ExampleClient_SaveMemory() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-facts"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	for _, city := range []string{"London", "Paris"} {
		saved, err := client.SaveMemory(
			ctx, "I live in "+city, memory.CategoryIdentity, "Where to look for trains and restaurants",
			&memory.SaveMemoryOptions{
				Source:   &memory.MemorySource{SessionID: "chat-1", Actor: "concierge"},
				DecideBy: memory.DecidedByRules, // Without it: by the language model, if there is one.
			},
		)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(saved.Outcome, "-", saved.Memory.Content)
	}
	preloaded, err := client.GetPreloadedMemories(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, fact := range preloaded.Memories {
		fmt.Println("in the prompt:", fact.Content)
	}
	// Output:
	// saved - User lives in London
	// superseded - User lives in Paris
	// in the prompt: User lives in Paris
}

func ExampleClient_SearchMemories() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-search"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	for _, fact := range []string{"User prefers window seats", "User prefers green tea"} {
		if _, err := client.SaveMemory(
			ctx, fact, memory.CategoryPreference, "What the user likes", nil,
		); err != nil {
			log.Fatal(err)
		}
	}
	found, err := client.SearchMemories(ctx, "Which tea?", &memory.SearchMemoriesOptions{Limit: memory.Ptr(1)})
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range found.Results {
		fmt.Println(result.Memory.Content)
	}
	// Output: User prefers green tea
}
