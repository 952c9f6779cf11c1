package memory_test

import (
	"context"
	"fmt"
	"log"
	"os"

	memory "github.com/memory-service/memory-service/clients/go"
)

func ExampleClient_CheckRelevance() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-relevance"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	if _, err := client.SaveState(ctx, "kudos/list", []string{"Ada", "Grace"}); err != nil {
		log.Fatal(err)
	}
	if _, err := client.SaveState(ctx, "weather/lisbon", 21); err != nil {
		log.Fatal(err)
	}
	relevance, err := client.CheckRelevance(ctx, "Who is on the kudos list?", nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, entry := range relevance.Entries {
		fmt.Println(entry.Key, entry.Value)
	}
	// Output: kudos/list [Ada Grace]
}
