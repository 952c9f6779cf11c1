package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// collected converts all values that an iteration of the client yields.
func collected[N, P any](all iter.Seq2[N, error], convert func(N) P) ([]P, error) {
	var converted []P
	for native, err := range all {
		if err != nil {
			return nil, err
		}
		converted = append(converted, convert(native))
	}
	return converted, nil
}

// answersOf writes the responses of a stream.
func answersOf[M proto.Message](responses []M) (*answer, error) {
	texts := make([]json.RawMessage, len(responses))
	for index, response := range responses {
		text, err := protojson.Marshal(response)
		if err != nil {
			return nil, err
		}
		texts[index] = text
	}
	return &answer{Responses: texts}, nil
}

// watch waits for the number of changes in the step, and then ends the call.
func watch(ctx context.Context, client *memory.Client, asked *step) (*answer, error) {
	in, err := requestOf(asked.Call, asked.Request)
	if err != nil {
		return nil, err
	}
	client = scoped(client, in)
	var options []memory.StreamOption
	if after := in.optionalInteger("after_revision"); after != nil {
		options = append(options, memory.WithAfterRevision(*after))
	}
	if interval := in.optionalDuration("heartbeat_interval"); interval != nil {
		options = append(options, memory.WithHeartbeatInterval(*interval))
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	var changes []*memoryv1.WatchResponse
	for change, err := range client.Watch(ctx, options...) {
		if err != nil {
			return nil, err
		}
		changes = append(changes, &memoryv1.WatchResponse{Change: changeOf(change)})
		if len(changes) >= asked.Take {
			break
		}
	}
	return answersOf(changes)
}

func changeOf(change memory.Change) *memoryv1.Change {
	return &memoryv1.Change{
		Type:     enumOf[memoryv1.ChangeType](change.Type),
		Revision: change.Revision,
		ItemId:   string(change.ItemID),
		Item:     itemOf(change.Item),
		StateKey: change.StateKey,
		State:    entryOf(change.State),
	}
}

func export(ctx context.Context, client *memory.Client, asked *step) (*answer, error) {
	in, err := requestOf(asked.Call, asked.Request)
	if err != nil {
		return nil, err
	}
	client = scoped(client, in)
	options := []memory.StreamOption{memory.WithAfterRevision(in.integer("after_revision"))}
	if in.flag("include_embedding") {
		options = append(options, memory.WithExportedEmbeddings())
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	records, err := collected(client.Export(ctx, options...), recordOf)
	if err != nil {
		return nil, err
	}
	return answersOf(records)
}

func recordOf(record memory.Record) *memoryv1.ExportResponse {
	switch record := record.(type) {
	case *memory.Item:
		return &memoryv1.ExportResponse{Record: &memoryv1.ExportResponse_Item{Item: itemOf(record)}}
	case *memory.StateEntry:
		return &memoryv1.ExportResponse{Record: &memoryv1.ExportResponse_State{State: entryOf(record)}}
	}
	panic(fmt.Sprintf("the client exported a %T", record))
}

// importRecords passes the records of all requests as one iteration.
func importRecords(ctx context.Context, client *memory.Client, asked *step) (*answer, error) {
	var batches [][]memory.Record
	var options []memory.ImportOption
	for index, text := range asked.Requests {
		in, err := requestOf(asked.Call, text)
		if err != nil {
			return nil, err
		}
		if index == 0 {
			client = scoped(client, in)
			options = append(options, memory.WithOnDuplicate(memory.OnDuplicate(in.enum("on_duplicate"))))
		} // The client names the namespace once, so a later one stays unread.
		batches = append(batches, recordsOf(in))
		if err := in.check(); err != nil {
			return nil, err
		}
	}
	size, err := batchSize(batches)
	if err != nil {
		return nil, err
	}
	if size > 0 {
		options = append(options, memory.WithBatchRecords(size))
	}
	summary, err := client.ImportItems(ctx, memory.Records(slices.Values(slices.Concat(batches...))), options...)
	if err != nil {
		return nil, err
	}
	return answerOf(&memoryv1.ImportResponse{
		ImportedCount:      summary.ImportedCount,
		SkippedCount:       summary.SkippedCount,
		ImportedStateCount: summary.ImportedStateCount,
		SkippedStateCount:  summary.SkippedStateCount,
		Revision:           summary.Revision,
		Degraded:           degradedOf(summary.Degraded),
	})
}

// batchSize returns the number of records in the batches. The client makes the batches, all of one size
// except the last, which may be smaller. It cannot express others.
func batchSize(batches [][]memory.Record) (int, error) {
	size := 0
	for index, batch := range batches {
		size = max(size, len(batch))
		if len(batch) != size && index < len(batches)-1 || len(batch) > len(batches[0]) {
			return 0, inexpressible{"ImportRequest.items"}
		}
	}
	return size, nil
}

func recordsOf(in *fields) []memory.Record {
	var records []memory.Record
	for _, item := range in.childList("items") {
		records = append(records, item.importedItem())
	}
	for _, entry := range in.childList("states") {
		records = append(records, entry.importedEntry())
	}
	return records
}

// iterate goes through all items of a namespace by the client's own iteration, or retrieves them without
// a limit, and reports whether the n-th text was "item n".
func iterate(ctx context.Context, client *memory.Client, text json.RawMessage) (*answer, error) {
	var asked struct {
		Namespace string `json:"namespace"`
		By        string `json:"by"`
	}
	if err := json.Unmarshal(text, &asked); err != nil {
		return nil, err
	}
	seen := sight{Ordered: true}
	client = client.Namespace(asked.Namespace)
	if asked.By == "list" {
		for item, err := range client.ListItems(ctx) {
			if err != nil {
				return nil, err
			}
			seen.see(item)
		}
	} else {
		items, err := client.Retrieve(ctx, memory.WithNoLimit())
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			seen.see(item)
		}
	}
	written, err := json.Marshal(seen)
	return &answer{Response: written}, err
}

// sight summarises the items of an iteration.
type sight struct {
	Count   int    `json:"count"`
	First   string `json:"first"`
	Last    string `json:"last"`
	Ordered bool   `json:"ordered"`
}

func (s *sight) see(item memory.MemoryItem) {
	text, _ := item.GetContent().(string)
	if s.Count == 0 {
		s.First = text
	}
	s.Last = text
	s.Ordered = s.Ordered && text == fmt.Sprintf("item %d", s.Count)
	s.Count++
}
