package memory

import (
	"context"
	"iter"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// ServerInfo is what a server is.
type ServerInfo struct {
	// Version of the server.
	Version string
	// Store that keeps the records: "hnsw", "memory" or "postgres".
	Store string
	// Embedder that turns text into vectors, as "provider:model", or "none".
	Embedder string
	// EmbeddingDimension of the embedder's vectors. 0: no embedder.
	EmbeddingDimension int
	// LLM that the server may ask, as "provider:model", or "none".
	LLM string
	// StartTime of the server.
	StartTime time.Time
	// Limits in force, by name; the unit is part of the name, as in "text_bytes_max".
	Limits map[string]int64
	// Backup that is under way. Nil: none is, or the caller may not make one.
	Backup *BackupProgress
	// Reranker that puts the best results in order where a caller asks for it, as "provider:model", or
	// "none".
	Reranker string
	// ServerName of the server that answered, of several over the same records. Empty: it is of an earlier
	// release.
	ServerName string
}

// BackupProgress tells how far a backup is.
type BackupProgress struct {
	Name       string
	DoneBytes  int64
	TotalBytes int64
}

// NamespaceSummary is a namespace in a list.
type NamespaceSummary struct {
	// Namespace is its name.
	Namespace string
	// ItemCount is how many items it holds.
	ItemCount int64
	// Revision of its last write.
	Revision int64
	// CreateTime of its first write.
	CreateTime time.Time
}

// NamespaceStats is what a namespace holds.
type NamespaceStats struct {
	// Namespace is its name.
	Namespace string
	// Revision of its last write.
	Revision int64
	// ItemCount is how many items it holds.
	ItemCount int64
	// StateCount is how many state keys it holds.
	StateCount int64
	// EmbeddedCount is how many of the items have a vector.
	EmbeddedCount int64
	// EmbeddingDimension of the vectors. 0: none yet.
	EmbeddingDimension int
	// EmbeddingModel that the vectors come from: the embedder's name, or "client". Empty: none yet.
	EmbeddingModel string
	// CreateTime of the first write.
	CreateTime time.Time
	// Index tells how vectors are searched at present.
	Index IndexStats
	// PendingCount is how many of the items wait to be embedded, after their embedder did not answer
	// or after [Client.Reembed].
	PendingCount int64
}

// ReembedOptions are what may be left out of [Client.Reembed].
type ReembedOptions struct {
	// ReplaceClientVectors agrees that vectors which clients brought are replaced, too. False: a
	// namespace whose vectors are its clients' own is refused.
	ReplaceClientVectors bool
}

// Reembedding tells that a namespace is on its way to the server's embedder.
type Reembedding struct {
	// PendingCount is how many items wait to be embedded. 0: there was nothing to do.
	PendingCount int64
	// EmbeddingModel that the namespace is of now.
	EmbeddingModel string
	// Revision of the namespace.
	Revision int64
}

// UndoOptions tell whose writes [Client.UndoWrites] takes back: Writer, CredentialID or both, or
// AnyWriter.
type UndoOptions struct {
	// Writer is whose writes, as [Provenance] says. Empty: of any name.
	Writer string
	// CredentialID with which they were written. Empty: with any.
	CredentialID string
	// AnyWriter takes back what everybody wrote, also without a name.
	AnyWriter bool
	// Since is the time from which on they wrote, by the server's clock. Required.
	Since time.Time
	// DryRun tells what would be done, and does nothing. It takes no [WithRequestID].
	DryRun bool
}

// UndoneWrites tells what was taken back, or would be.
type UndoneWrites struct {
	// RemovedCount is how many items and states were removed.
	RemovedCount int64
	// RestoredCount is how many items and states got back the version before.
	RestoredCount int64
	// UnrestorableCount is how much cannot be undone, such as deletions.
	UnrestorableCount int64
	// UnrestorableIDs are the items, and the keys of states, of which that is so; at most 100.
	UnrestorableIDs []string
	// Revision of the namespace afterwards.
	Revision int64
}

// IndexStats describes the index of a namespace, which is in memory only while it is in use.
type IndexStats struct {
	// Loaded tells whether the index is in memory.
	Loaded bool
	// Kind of search: "exact" or "hnsw". Empty: not loaded.
	Kind string
	// GraphCount is how many vectors are in the HNSW graph.
	GraphCount int64
	// ExactCount is how many vectors are searched exactly.
	ExactCount int64
	// MemoryBytes that the index takes, estimated.
	MemoryBytes int64
	// EfSearch of the HNSW graph: how many candidates a search keeps. 0: no graph.
	EfSearch int
}

// BackupSummary is what a backup wrote.
type BackupSummary struct {
	// Name of the backup, a folder inside the server's backup folder.
	Name string
	// SizeBytes of the copy.
	SizeBytes int64
	// Checksum of the copy, as "xxh3_128:" and 32 hexadecimal digits.
	Checksum string
	// NamespaceCount is how many namespaces it holds.
	NamespaceCount int64
	// ItemCount is how many items it holds.
	ItemCount int64
	// Duration that it took.
	Duration time.Duration
}

// HealthStatus tells whether a server takes calls.
type HealthStatus string

// The states of a server.
const (
	HealthUnknown        HealthStatus = "unknown"
	HealthServing        HealthStatus = "serving"
	HealthNotServing     HealthStatus = "not_serving"
	HealthServiceUnknown HealthStatus = "service_unknown"
)

// Info returns what the server is: version, store, embedder, limits.
func (c *Client) Info(ctx context.Context) (*ServerInfo, error) {
	response, err := invoke(ctx, c, c.admin.GetInfo, &memoryv1.GetInfoRequest{})
	if err != nil {
		return nil, err
	}
	info := &ServerInfo{
		Version:            response.GetVersion(),
		Store:              response.GetStore(),
		Embedder:           response.GetEmbedder(),
		EmbeddingDimension: int(response.GetEmbeddingDimension()),
		LLM:                response.GetLlm(),
		StartTime:          timeTo(response.GetStartTime()),
		Limits:             response.GetLimits(),
		Reranker:           response.GetReranker(),
		ServerName:         response.GetServerName(),
	}
	if backup := response.GetBackup(); backup != nil {
		info.Backup = &BackupProgress{
			Name: backup.GetName(), DoneBytes: backup.GetDoneBytes(), TotalBytes: backup.GetTotalBytes(),
		}
	}
	return info, nil
}

// ListNamespaces yields the namespaces whose names begin with prefix, in the order of their names;
// pages are fetched as they are needed. It takes [WithEntriesPerPage].
func (c *Client) ListNamespaces(ctx context.Context, prefix string, options ...ListOption) iter.Seq2[NamespaceSummary, error] {
	return paged(func(token string) ([]NamespaceSummary, string, error) {
		preview, pageSize, err := listSettingsFrom(options)
		if err != nil {
			return nil, "", err
		}
		if preview {
			return nil, "", invalidArgument("", "namespaces have no previews")
		}
		response, err := invoke(ctx, c, c.admin.ListNamespaces, &memoryv1.ListNamespacesRequest{
			Prefix: prefix, PageSize: pageSize, PageToken: token,
		})
		var summaries []NamespaceSummary
		for _, summary := range response.GetNamespaces() {
			summaries = append(summaries, NamespaceSummary{
				Namespace:  summary.GetNamespace(),
				ItemCount:  summary.GetItemCount(),
				Revision:   summary.GetRevision(),
				CreateTime: timeTo(summary.GetCreateTime()),
			})
		}
		return summaries, response.GetNextPageToken(), err
	})
}

// NamespaceStats returns what the client's namespace holds. It is [ErrNotFound] when nothing was
// ever written to it.
func (c *Client) NamespaceStats(ctx context.Context) (*NamespaceStats, error) {
	request := &memoryv1.GetNamespaceStatsRequest{Namespace: c.namespace}
	response, err := invoke(ctx, c, c.admin.GetNamespaceStats, request)
	if err != nil {
		return nil, err
	}
	index := response.GetIndex()
	return &NamespaceStats{
		Namespace:          response.GetNamespace(),
		Revision:           response.GetRevision(),
		ItemCount:          response.GetItemCount(),
		StateCount:         response.GetStateCount(),
		EmbeddedCount:      response.GetEmbeddedCount(),
		EmbeddingDimension: int(response.GetEmbeddingDimension()),
		EmbeddingModel:     response.GetEmbeddingModel(),
		CreateTime:         timeTo(response.GetCreateTime()),
		Index: IndexStats{
			Loaded:      index.GetLoaded(),
			Kind:        index.GetKind(),
			GraphCount:  index.GetGraphCount(),
			ExactCount:  index.GetExactCount(),
			MemoryBytes: index.GetMemoryBytes(),
			EfSearch:    int(index.GetEfSearch()),
		},
		PendingCount: response.GetPendingCount(),
	}, nil
}

// Reembed moves the client's namespace to the server's embedder: its items are embedded anew, by and
// by, while it serves; until its turn has come an item is found by its words alone. It returns when the
// move is on disk, not when it is done: [NamespaceStats] has the PendingCount. It goes on after a
// restart. A namespace that is of this embedder already is left alone. Options may be nil.
//
// It is [ErrNotFound] when nothing was ever written to the namespace, [ErrFailedPrecondition] when the
// server has no embedder, or the vectors are the clients' own and the options do not agree, and
// [ErrUnavailable] when the embedder does not answer: then nothing is changed.
func (c *Client) Reembed(ctx context.Context, options *ReembedOptions) (*Reembedding, error) {
	if options == nil {
		options = &ReembedOptions{}
	}
	response, err := invoke(ctx, c, c.admin.Reembed, &memoryv1.ReembedRequest{
		Namespace: c.namespace, ReplaceClientVectors: options.ReplaceClientVectors,
	})
	if err != nil {
		return nil, err
	}
	return &Reembedding{
		PendingCount:   response.GetPendingCount(),
		EmbeddingModel: response.GetEmbeddingModel(),
		Revision:       response.GetRevision(),
	}, nil
}

// UndoWrites takes back what somebody wrote to the client's namespace since a time: items and states
// that they added are removed, and what they replaced gets back the version before. What they deleted
// cannot come back. One that was interrupted goes on when it is repeated. It takes [WithRequestID]. It
// is [ErrInvalidArgument] when it is not said whose writes, or since when.
func (c *Client) UndoWrites(ctx context.Context, undo UndoOptions, options ...WriteOption) (*UndoneWrites, error) {
	settings, err := writeSettingsFrom(options)
	if err != nil {
		return nil, err
	}
	request := &memoryv1.UndoWritesRequest{
		Namespace:    c.namespace,
		Writer:       undo.Writer,
		CredentialId: undo.CredentialID,
		AnyWriter:    undo.AnyWriter,
		Since:        timeFrom(undo.Since),
		DryRun:       undo.DryRun,
	}
	if !undo.DryRun || len(options) > 0 {
		request.RequestId = settings.requestID
	}
	response, err := invoke(ctx, c, c.admin.UndoWrites, request)
	if err != nil {
		return nil, err
	}
	return &UndoneWrites{
		RemovedCount:      response.GetRemovedCount(),
		RestoredCount:     response.GetRestoredCount(),
		UnrestorableCount: response.GetUnrestorableCount(),
		UnrestorableIDs:   response.GetUnrestorableIds(),
		Revision:          response.GetRevision(),
	}, nil
}

// DeleteNamespace removes the client's namespace with all it holds; the next write begins a new one.
// It is [ErrNotFound] when there is no such namespace. It is tried once.
func (c *Client) DeleteNamespace(ctx context.Context) (Removed, error) {
	request := &memoryv1.DeleteNamespaceRequest{Namespace: c.namespace}
	response, err := invoke(ctx, c, c.admin.DeleteNamespace, request)
	return Removed{
		ItemCount: response.GetRemovedItemCount(), StateCount: response.GetRemovedStateCount(),
	}, err
}

// Flush moves the log into the database and saves the indexes; it returns how long that took.
// Acknowledged writes are on disk without it; it makes the next start of the server quicker. It has no
// deadline but that of ctx.
func (c *Client) Flush(ctx context.Context) (time.Duration, error) {
	response, err := invokeUnlimited(ctx, c, c.admin.Flush, &memoryv1.FlushRequest{})
	return durationTo(response.GetDuration()), err
}

// Backup writes a consistent copy of all records to the server's backup folder. The name is made of
// the present time when it is empty; one that exists is refused. It is [ErrUnsupported] when the
// server's store has nothing on disk. It is tried once, and has no deadline but that of ctx.
func (c *Client) Backup(ctx context.Context, name string) (*BackupSummary, error) {
	response, err := invokeUnlimited(ctx, c, c.admin.Backup, &memoryv1.BackupRequest{Name: name})
	if err != nil {
		return nil, err
	}
	return &BackupSummary{
		Name:           response.GetName(),
		SizeBytes:      response.GetSizeBytes(),
		Checksum:       response.GetChecksum(),
		NamespaceCount: response.GetNamespaceCount(),
		ItemCount:      response.GetItemCount(),
		Duration:       durationTo(response.GetDuration()),
	}, nil
}

// Health returns whether the server, or one of its services if a name such as
// "memory_service.v1.MemoryService" is given, takes calls. It is [ErrNotFound] when the server has
// no such service.
func (c *Client) Health(ctx context.Context, service string) (HealthStatus, error) {
	request := &grpc_health_v1.HealthCheckRequest{Service: service}
	response, err := invoke(ctx, c, c.health.Check, request)
	if err != nil {
		return HealthUnknown, err
	}
	return enumTo[HealthStatus](response.GetStatus(), ""), nil
}
