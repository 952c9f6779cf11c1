package memory_test

import (
	"context"
	"fmt"
	"log"
	"os"

	memory "github.com/memory-service/memory-service/clients/go"
)

func ExampleClient_StoreInteraction() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-interactions"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	question, err := client.StoreInteraction(ctx, "ada", "How does a sail work?", nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.StoreResponse(
		ctx, "It bends the wind.", &memory.StoreResponseOptions{InResponseTo: question.ID},
	); err != nil {
		log.Fatal(err)
	}
	last, err := client.RetrieveLastInteractions(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, pair := range last.Interactions {
		fmt.Printf("%s: %s\n", pair.Message.Sender, pair.Message.Content)
		for _, response := range pair.Responses {
			fmt.Printf("%s: %s\n", response.Sender, response.Content)
		}
	}
	// Output:
	// ada: How does a sail work?
	// system: It bends the wind.
}
