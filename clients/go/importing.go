package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

const (
	batchRecordsDefault = 500
	batchRecordsMax     = 1000
	batchBytesMax       = 2 << 20
)

// Record is a record of exports and imports: an *[Item] or a *[StateEntry].
type Record interface {
	isRecord()
}

func (*Item) isRecord()       {}
func (*StateEntry) isRecord() {}

// Records converts items or states for [Client.ImportItems], as in Records(slices.Values(items)).
func Records[T Record](records iter.Seq[T]) iter.Seq2[Record, error] {
	if records == nil {
		return failed[Record](invalidArgument("records", "records: must not be nil"))
	}
	return func(yield func(Record, error) bool) {
		for record := range records {
			if !yield(record, nil) {
				return
			}
		}
	}
}

// ImportOption changes how records are imported.
type ImportOption interface {
	setImport(*importSettings)
}

type importOption func(*importSettings)

func (o importOption) setImport(s *importSettings) { o(s) }

type importSettings struct {
	onDuplicate  OnDuplicate
	batchRecords int
}

// WithBatchRecords sets how many records go in one batch, 1 to 1000. Without it: 500. A batch also
// has a maximum size.
func WithBatchRecords(records int) ImportOption {
	return importOption(func(s *importSettings) { s.batchRecords = records })
}

// ImportSummary reports what an import wrote.
type ImportSummary struct {
	// ImportedCount is how many items were written.
	ImportedCount int64
	// SkippedCount is how many items already existed and were left unchanged, or have expired.
	SkippedCount int64
	// ImportedStateCount is how many state entries were written.
	ImportedStateCount int64
	// SkippedStateCount is how many keys already existed and were left unchanged, or have expired.
	SkippedStateCount int64
	// Revision of the namespace after the last batch.
	Revision int64
	// Degraded lists what the server could not do, such as embedding the texts. Empty: it did everything.
	Degraded []Degradation
}

// ImportItems writes any number of items and state entries as fast as the server takes them. The
// records come from [Client.Export] or [Records]. They are iterated while they are sent, in batches, each
// written as a whole or not at all. Its only deadline is that of ctx.
//
// If an import breaks, or its records yield an error, earlier batches stay written. It is never retried;
// if the items have ids, send them again with [DuplicateSkip].
func (c *Client) ImportItems(ctx context.Context, records iter.Seq2[Record, error], options ...ImportOption) (*ImportSummary, error) {
	if records == nil {
		return nil, invalidArgument("records", "records: must not be nil")
	}
	batches, err := c.newBatcher(options)
	if err != nil {
		return nil, err
	}
	ctx, err = c.outgoing(ctx, c.namespace)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // If the source fails, end the call without a last batch.
	upload, err := c.memories.Import(ctx)
	if err != nil {
		return nil, c.callError(ctx, err, nil)
	}
	if err := batches.sendAll(upload, records); err != nil {
		return nil, err
	}
	response, err := upload.CloseAndRecv()
	if err != nil {
		return nil, c.callError(ctx, err, nil)
	}
	return &ImportSummary{
		ImportedCount:      response.GetImportedCount(),
		SkippedCount:       response.GetSkippedCount(),
		ImportedStateCount: response.GetImportedStateCount(),
		SkippedStateCount:  response.GetSkippedStateCount(),
		Revision:           response.GetRevision(),
		Degraded:           degradedTo(response.GetDegraded()),
	}, nil
}

// batcher gathers records into batches, bounded in number and in bytes.
type batcher struct {
	client       *Client
	batch        *memoryv1.ImportRequest
	batchRecords int
	count        int
	bytes        int
	index        int
}

func (c *Client) newBatcher(options []ImportOption) (*batcher, error) {
	settings := &importSettings{batchRecords: batchRecordsDefault}
	for _, option := range options {
		if option != nil {
			option.setImport(settings)
		}
	}
	if settings.batchRecords < 1 || settings.batchRecords > batchRecordsMax {
		return nil, invalidArgument("batch_records", fmt.Sprintf("a batch must have 1 to %d records, not %d", batchRecordsMax, settings.batchRecords))
	}
	choice, err := onDuplicateFrom(settings.onDuplicate, "on_duplicate")
	if err != nil {
		return nil, err
	}
	first := &memoryv1.ImportRequest{Namespace: c.namespace, OnDuplicate: choice}
	return &batcher{client: c, batch: first, batchRecords: settings.batchRecords}, nil
}

type uploadStream = grpc.ClientStreamingClient[memoryv1.ImportRequest, memoryv1.ImportResponse]

// sendAll sends all records, or as many as the server takes. The last batch is sent even if it is
// empty, because the first names the namespace.
func (b *batcher) sendAll(upload uploadStream, records iter.Seq2[Record, error]) error {
	for record, err := range records {
		if err != nil {
			return err
		}
		item, state, err := b.convert(record)
		if err != nil {
			return err
		}
		size := proto.Size(item) + proto.Size(state)
		if b.isFullFor(size) {
			if ended, err := b.send(upload); ended || err != nil {
				return err
			}
		}
		b.add(item, state, size)
	}
	_, err := b.send(upload)
	return err
}

// convert returns the item or the state in a record.
func (b *batcher) convert(record Record) (*memoryv1.MemoryItem, *memoryv1.StateEntry, error) {
	if isNil(record) {
		where := fmt.Sprintf("records[%d]", b.index)
		return nil, nil, invalidArgument(where, where+": the record is missing")
	}
	if item, ok := record.(*Item); ok {
		converted, err := importedItemFrom(item, fmt.Sprintf("items[%d]", b.index))
		return converted, nil, err
	}
	converted, err := importedEntryFrom(record.(*StateEntry), fmt.Sprintf("states[%d]", b.index))
	return nil, converted, err
}

func (b *batcher) isFullFor(size int) bool {
	return b.count >= b.batchRecords || b.count > 0 && b.bytes+size > batchBytesMax
}

func (b *batcher) add(item *memoryv1.MemoryItem, state *memoryv1.StateEntry, size int) {
	if item != nil {
		b.batch.Items = append(b.batch.Items, item)
	} else {
		b.batch.States = append(b.batch.States, state)
	}
	b.index++
	b.count++
	b.bytes += size
}

// send sends the batch and begins another. It reports whether the server has ended the call; the call's
// status then has the reason.
func (b *batcher) send(upload uploadStream) (ended bool, err error) {
	err = upload.Send(b.batch)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	if err != nil {
		return false, b.client.callError(upload.Context(), err, b.batch)
	}
	b.batch, b.count, b.bytes = &memoryv1.ImportRequest{}, 0, 0
	return false, nil
}
