package memory_test

import (
	"context"
	"fmt"
	"log"
	"os"

	memory "github.com/memory-service/memory-service/clients/go"
)

func ExampleClient_AddDocument() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-documents"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	added, err := client.AddDocument(ctx, &memory.Document{
		Title: "Boats", Text: "The mast is made of spruce. The hull is made of oak.",
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("fragments:", added.FragmentCount)

	found, err := client.SearchFragments(ctx, "What is the mast made of?", nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range found.Results {
		fmt.Printf("%s: %s\n", result.Document.Title, result.Fragment.Text)
	}
	// Output:
	// fragments: 1
	// Boats: The mast is made of spruce. The hull is made of oak.
}
