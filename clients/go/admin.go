package memory

import (
	"context"
	"iter"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// ServerInfo describes a server.
type ServerInfo struct {
	// Version of the server.
	Version string
	// Store that keeps the records: "hnsw", "memory" or "postgres".
	Store string
	// Embedder that turns text into vectors, as "provider:model", or "none".
	Embedder string
	// EmbeddingDimension of the embedder's vectors. 0: no embedder.
	EmbeddingDimension int
	// LLM that the server uses, as "provider:model", or "none".
	LLM string
	// StartTime of the server.
	StartTime time.Time
	// Limits in force, by name; the unit is part of the name, as in "text_bytes_max".
	Limits map[string]int64
	// Backup in progress. Nil: none, or the caller may not make one.
	Backup *BackupProgress
	// Reranker that reorders the best results on request, as "provider:model", or "none".
	Reranker string
	// ServerName of the server that answered, of several over the same records. Empty: an earlier release.
	ServerName string
}

// BackupProgress reports how far a backup has got.
type BackupProgress struct {
	Name       string
	DoneBytes  int64
	TotalBytes int64
}

// NamespaceSummary is a namespace in a list.
type NamespaceSummary struct {
	// Namespace is its name.
	Namespace string
	// ItemCount is the number of its items.
	ItemCount int64
	// Revision of its last write.
	Revision int64
	// CreateTime of its first write.
	CreateTime time.Time
	// Settings of the namespace. Nil: none was ever made.
	Settings *NamespaceSettings
}

// NamespaceSettings are the settings of a namespace.
type NamespaceSettings struct {
	// TimeZone is the IANA name of the time zone of its users. Empty: UTC.
	TimeZone string
	// DefaultTTL is the time until items of conversations expire that are added without an expiry. 0: never.
	DefaultTTL time.Duration
	// Version counts the changes of the settings.
	Version int64
}

// NamespaceUpdate is a change of settings; those that are nil stay.
type NamespaceUpdate struct {
	// TimeZone is an IANA name such as "Europe/Berlin"; empty: UTC.
	TimeZone *string
	// DefaultTTL is the time until items of conversations expire that are added without an expiry; 0: never.
	DefaultTTL *time.Duration
	// ExpectedVersion makes the change conditional: it happens only if this is the version of the settings,
	// 0 if there are none, and otherwise returns [ErrConflict].
	ExpectedVersion *int64
}

// NamespaceStats describes the contents of a namespace.
type NamespaceStats struct {
	// Namespace is its name.
	Namespace string
	// Revision of its last write.
	Revision int64
	// ItemCount is the number of its items.
	ItemCount int64
	// StateCount is the number of its state keys.
	StateCount int64
	// EmbeddedCount is how many of the items have a vector.
	EmbeddedCount int64
	// EmbeddingDimension of the vectors. 0: none yet.
	EmbeddingDimension int
	// EmbeddingModel that the vectors come from: the embedder's name, or "client". Empty: none yet.
	EmbeddingModel string
	// CreateTime of the first write.
	CreateTime time.Time
	// Index describes how vectors are searched now.
	Index IndexStats
	// PendingCount is the number of items waiting to be embedded, because the embedder did not answer or
	// after [Client.Reembed].
	PendingCount int64
	// Settings of the namespace. Nil: none was ever made.
	Settings *NamespaceSettings
	// Usage of the namespace. Nil without [WithUsage].
	Usage *NamespaceUsage
}

// NamespaceUsage is how much a namespace is used.
type NamespaceUsage struct {
	// ByteCount is the number of bytes of items and states, without vectors, indexes and history.
	ByteCount int64
	// CallCount is the number of calls to this server that named the namespace, including this one.
	CallCount int64
	// CallCountStartTime is when the server began to count them.
	CallCountStartTime time.Time
}

// StatsOption is an option of [Client.NamespaceStats].
type StatsOption func(*memoryv1.GetNamespaceStatsRequest)

// WithUsage adds the bytes and calls of the namespace, for which the server may read all of it.
func WithUsage() StatsOption {
	return func(request *memoryv1.GetNamespaceStatsRequest) { request.IncludeUsage = true }
}

// ReembedOptions are the optional arguments of [Client.Reembed].
type ReembedOptions struct {
	// ReplaceClientVectors allows replacing vectors that clients provided. False: a namespace with such
	// vectors is refused.
	ReplaceClientVectors bool
}

// Reembedding reports the start of a namespace's move to the server's embedder.
type Reembedding struct {
	// PendingCount is the number of items waiting to be embedded. 0: there was nothing to do.
	PendingCount int64
	// EmbeddingModel that the namespace uses now.
	EmbeddingModel string
	// Revision of the namespace.
	Revision int64
}

// UndoOptions select the writes that [Client.UndoWrites] undoes: by Writer, CredentialID or both, or
// AnyWriter.
type UndoOptions struct {
	// Writer of the writes, as in [Provenance]. Empty: any.
	Writer string
	// CredentialID of the writes. Empty: any.
	CredentialID string
	// AnyWriter undoes the writes of all callers, including those without a name.
	AnyWriter bool
	// Since is the time of the first write to undo, by the server's clock. Required.
	Since time.Time
	// DryRun reports what would be done and changes nothing. It does not take [WithRequestID].
	DryRun bool
}

// UndoneWrites reports the result of undoing writes, or of a dry run.
type UndoneWrites struct {
	// RemovedCount is how many items and states were removed.
	RemovedCount int64
	// RestoredCount is how many items and states got back their previous version.
	RestoredCount int64
	// UnrestorableCount is how many changes cannot be undone, such as deletions.
	UnrestorableCount int64
	// UnrestorableIDs are the ids of those items and the keys of those states; at most 100.
	UnrestorableIDs []string
	// Revision of the namespace afterwards.
	Revision int64
}

// IndexStats describes the index of a namespace, which is in memory only while it is in use.
type IndexStats struct {
	// Loaded reports whether the index is in memory.
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

// BackupSummary describes a backup.
type BackupSummary struct {
	// Name of the backup, a folder inside the server's backup folder.
	Name string
	// SizeBytes of the copy.
	SizeBytes int64
	// Checksum of the copy, as "xxh3_128:" and 32 hexadecimal digits.
	Checksum string
	// NamespaceCount is the number of its namespaces.
	NamespaceCount int64
	// ItemCount is the number of its items.
	ItemCount int64
	// Duration of the backup.
	Duration time.Duration
}

// HealthStatus says whether a server takes calls.
type HealthStatus string

// The states of a server.
const (
	HealthUnknown        HealthStatus = "unknown"
	HealthServing        HealthStatus = "serving"
	HealthNotServing     HealthStatus = "not_serving"
	HealthServiceUnknown HealthStatus = "service_unknown"
)

// Info returns the server's version, store, embedder, limits and more.
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

// ListNamespaces yields the namespaces whose names begin with prefix, in the order of their names; pages
// are fetched as needed. It takes [WithEntriesPerPage].
func (c *Client) ListNamespaces(ctx context.Context, prefix string, options ...ListOption) iter.Seq2[NamespaceSummary, error] {
	return paged(func(token string) ([]NamespaceSummary, string, error) {
		preview, pageSize, err := listSettingsFrom(options)
		if err != nil {
			return nil, "", err
		}
		if preview {
			return nil, "", invalidArgument("include_preview", "namespaces have no previews")
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
				Settings:   settingsTo(summary.GetSettings()),
			})
		}
		return summaries, response.GetNextPageToken(), err
	})
}

// NamespaceStats returns what the client's namespace holds. It returns [ErrNotFound] if nothing was ever
// written to it. It takes [WithUsage].
func (c *Client) NamespaceStats(ctx context.Context, options ...StatsOption) (*NamespaceStats, error) {
	request := &memoryv1.GetNamespaceStatsRequest{Namespace: c.namespace}
	apply(request, options)
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
		Settings:     settingsTo(response.GetSettings()),
		Usage:        namespaceUsageTo(response.GetUsage()),
	}, nil
}

func namespaceUsageTo(usage *memoryv1.NamespaceUsage) *NamespaceUsage {
	if usage == nil {
		return nil
	}
	return &NamespaceUsage{
		ByteCount:          usage.GetByteCount(),
		CallCount:          usage.GetCallCount(),
		CallCountStartTime: timeTo(usage.GetCallCountStartTime()),
	}
}

// UpdateNamespace changes settings of the client's namespace, which is created if it does not exist.
func (c *Client) UpdateNamespace(ctx context.Context, update NamespaceUpdate) (*NamespaceSettings, error) {
	request := &memoryv1.UpdateNamespaceRequest{
		Namespace: c.namespace, ExpectedVersion: update.ExpectedVersion, UpdateMask: &fieldmaskpb.FieldMask{},
	}
	if update.TimeZone != nil {
		request.TimeZone = *update.TimeZone
		request.UpdateMask.Paths = append(request.UpdateMask.Paths, "time_zone")
	}
	if update.DefaultTTL != nil {
		if *update.DefaultTTL != 0 {
			request.DefaultTtl = durationpb.New(*update.DefaultTTL)
		}
		request.UpdateMask.Paths = append(request.UpdateMask.Paths, "default_ttl")
	}
	response, err := invoke(ctx, c, c.admin.UpdateNamespace, request)
	if err != nil {
		return nil, err
	}
	return settingsTo(response.GetSettings()), nil
}

func settingsTo(settings *memoryv1.NamespaceSettings) *NamespaceSettings {
	if settings == nil {
		return nil
	}
	return &NamespaceSettings{
		TimeZone:   settings.GetTimeZone(),
		DefaultTTL: settings.GetDefaultTtl().AsDuration(),
		Version:    settings.GetVersion(),
	}
}

// Reembed moves the client's namespace to the server's embedder: its items are embedded again in the
// background, and until then each is found by its words alone. It returns when the move is recorded on
// disk, not when it is done: [NamespaceStats] has the PendingCount. The move continues after a restart.
// A namespace that already uses this embedder is left unchanged. Options may be nil.
//
// It returns [ErrNotFound] if nothing was ever written to the namespace, [ErrFailedPrecondition] when
// the server has no embedder, or clients provided the vectors and ReplaceClientVectors is not set, and
// [ErrUnavailable] if the embedder does not answer; then nothing is changed.
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

// UndoWrites undoes the writes of one writer to the client's namespace since a time: added items and
// states are removed, replaced ones get back their previous version. Deletions cannot be undone. Repeat
// an interrupted call to continue it. It takes [WithRequestID]. It returns [ErrInvalidArgument] if the
// writer or the time is missing.
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

// DeleteNamespace removes the client's namespace with all its contents; the next write creates a new
// one. It returns [ErrNotFound] if there is no such namespace. It is never retried.
func (c *Client) DeleteNamespace(ctx context.Context) (Removed, error) {
	request := &memoryv1.DeleteNamespaceRequest{Namespace: c.namespace}
	response, err := invoke(ctx, c, c.admin.DeleteNamespace, request)
	return Removed{
		ItemCount: response.GetRemovedItemCount(), StateCount: response.GetRemovedStateCount(),
	}, err
}

// Flush moves the log into the database, saves the indexes and returns how long that took. Acknowledged
// writes are on disk without it; it makes the next start of the server faster. Its only deadline is that
// of ctx.
func (c *Client) Flush(ctx context.Context) (time.Duration, error) {
	response, err := invokeUnlimited(ctx, c, c.admin.Flush, &memoryv1.FlushRequest{})
	return durationTo(response.GetDuration()), err
}

// Backup writes a consistent copy of all records to the server's backup folder. An empty name is
// replaced by one made from the current time; an existing one is refused. It returns [ErrUnsupported] if
// the server's store has nothing on disk. It is never retried, and its only deadline is that of ctx.
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

// Health returns whether the server, or the named service, takes calls; a service is named as in
// "memory_service.v1.MemoryService". It returns [ErrNotFound] if the server has no such service.
func (c *Client) Health(ctx context.Context, service string) (HealthStatus, error) {
	request := &grpc_health_v1.HealthCheckRequest{Service: service}
	response, err := invoke(ctx, c, c.health.Check, request)
	if err != nil {
		return HealthUnknown, err
	}
	return enumTo[HealthStatus](response.GetStatus(), ""), nil
}
