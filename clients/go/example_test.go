package memory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/llms"
)

func Example() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	for _, message := range []*llms.Message{
		llms.NewUserMessage("Find me a train to Paris"),
		llms.NewAssistantMessage("One leaves at 12:04"),
	} {
		if err := client.Add(ctx, memory.NewChatMessageMemoryItem(message)); err != nil {
			log.Fatal(err)
		}
	}
	items, err := client.Retrieve(ctx, memory.WithMaxLimit(10))
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range memory.AsMessages(items) {
		fmt.Printf("%s: %s\n", message.Creator.Role, message.Text())
	}
	// Output:
	// user: Find me a train to Paris
	// assistant: One leaves at 12:04
}

func ExampleDial() {
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"),
		memory.WithNamespace("example-dial"),
		memory.WithTimeout(5*time.Second),
		memory.WithWaitForReady(), // The server may start after its clients.
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	status, err := client.Health(context.Background(), "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status)
	// Output: serving
}

func ExampleNewInMemoryMemory() {
	ctx := context.Background()
	kept := memory.NewInMemoryMemory()

	result := &llms.ToolCallResult{Name: "trains", Result: map[string]any{"departs": "12:04"}}
	if err := kept.Add(ctx, memory.NewToolCallResultMemoryItem(result)); err != nil {
		log.Fatal(err)
	}
	items, err := kept.Retrieve(ctx, memory.WithMaxLimit(10))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(items[0].GetContent().(*llms.ToolCallResult).Result)
	// Output: map[departs:12:04]
}

func ExampleClient_AddItem() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-add"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	item, err := client.AddItem(ctx, &memory.Item{
		Content:   "Ada likes tea",
		SessionID: "breakfast",
		Labels:    map[string]string{"topic": "drinks"},
		TTL:       24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(item.ID != "", item.Content, item.ExpireTime.After(item.CreateTime))
	// Output: true Ada likes tea true
}

func ExampleClient_RetrieveResults() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-retrieve"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	for _, text := range []string{"Ada likes green tea", "The train leaves at noon"} {
		if _, err := client.AddItem(ctx, &memory.Item{Content: text}); err != nil {
			log.Fatal(err)
		}
	}
	found, err := client.RetrieveResults(ctx, memory.WithQuery("a cup of tea"), memory.WithMaxLimit(1))
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range found.Results {
		fmt.Println(result.Item.Content, result.Score > 0)
	}
	// Output: Ada likes green tea true
}

func ExampleClient_ListItems() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-list"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	var items []*memory.Item
	for number := range 1000 {
		items = append(items, &memory.Item{Content: fmt.Sprint("item ", number)})
	}
	if _, err := client.BatchAdd(ctx, items); err != nil {
		log.Fatal(err)
	}
	count := 0
	for item, err := range client.ListItems(ctx, memory.WithNewestFirst()) {
		if err != nil {
			log.Fatal(err)
		}
		if count++; count == 1 {
			fmt.Println("newest:", item.Content)
		}
	}
	fmt.Println(count, "items")
	// Output:
	// newest: item 999
	// 1000 items
}

func ExampleClient_Watch() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-watch"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	item, err := client.AddItem(ctx, &memory.Item{Content: "Ada likes tea"})
	if err != nil {
		log.Fatal(err)
	}
	for change, err := range client.Watch(ctx, memory.WithAfterRevision(item.Revision-1)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(change.Type, change.Item.Content)
		break // A real program continues; this example ends the watch.
	}
	// Output: item_added Ada likes tea
}

func ExampleClient_ImportItems() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-import"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	items := []*memory.Item{{ID: "1", Content: "Ada likes tea"}, {ID: "2", Content: "Ada lives in Paris"}}
	if _, err := client.ImportItems(ctx, memory.Records(slices.Values(items))); err != nil {
		log.Fatal(err)
	}
	// A copy of the whole namespace, states included.
	copied := client.Namespace("example-import/copy")
	defer copied.Reset()
	summary, err := copied.ImportItems(ctx, client.Export(ctx), memory.WithOnDuplicate(memory.DuplicateSkip))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(summary.ImportedCount, "items")
	// Output: 2 items
}

func ExampleClient_SaveState() {
	type plan struct {
		Step int `json:"step"`
	}
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-state"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	saved, err := client.SaveState(ctx, "plan", plan{Step: 1})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.SaveState(ctx, "plan", plan{Step: 2}, memory.WithExpectedVersion(saved.Version)); err != nil {
		log.Fatal(err)
	}
	_, err = client.SaveState(ctx, "plan", plan{Step: 9}, memory.WithExpectedVersion(saved.Version))
	fmt.Println("another client wrote first:", errors.Is(err, memory.ErrConflict))

	entry, err := client.LoadState(ctx, "plan")
	if err != nil {
		log.Fatal(err)
	}
	var current plan
	if err := entry.Decode(&current); err != nil {
		log.Fatal(err)
	}
	fmt.Println("step", current.Step)
	// Output:
	// another client wrote first: true
	// step 2
}

func ExampleClient_BatchWrite() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-batch"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	operations := []memory.WriteOperation{
		&memory.AddOperation{Item: &memory.Item{Content: "Ada booked the night train", SessionID: "trip"}},
		&memory.DeleteWhereOperation{SessionID: "draft"},
		&memory.SaveStateOperation{Key: "plan", Value: "pack", ExpectedVersion: memory.Ptr(int64(0))},
	}
	written, err := client.BatchWrite(ctx, operations)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("version", written.Results[2].Version)

	_, err = client.BatchWrite(ctx, operations)
	fmt.Println("there is a plan already:", errors.Is(err, memory.ErrConflict))
	// Output:
	// version 1
	// there is a plan already: true
}

func ExampleClient_DeleteWhere() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-delete"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	defer client.Reset()

	for _, text := range []string{"Find me a train", "One leaves at 12:04"} {
		if _, err := client.AddItem(ctx, &memory.Item{Content: text, SessionID: "trip"}); err != nil {
			log.Fatal(err)
		}
	}
	deleted, err := client.DeleteWhere(ctx, memory.DeleteConditions{SessionID: "trip"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(deleted, "items")
	// Output: 2 items
}

func ExampleError() {
	ctx := context.Background()
	client, err := memory.Dial(os.Getenv("MEMORY_SERVICE_ADDRESS"), memory.WithNamespace("example-error"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_, err = client.Get(ctx, "nobody")
	fmt.Println(errors.Is(err, memory.ErrNotFound))

	_, err = client.AddItem(ctx, &memory.Item{Content: ""})
	var failure *memory.Error
	if errors.As(err, &failure) {
		fmt.Println(failure.Code, failure.Reason, failure.Field)
	}
	// Output:
	// true
	// INVALID_ARGUMENT INVALID_FIELD item.text
}
