package main

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

var adminAdapters = map[string]adapter{
	"AdminService/GetInfo":           getInfo,
	"AdminService/ListNamespaces":    listNamespaces,
	"AdminService/GetNamespaceStats": getNamespaceStats,
	"AdminService/UpdateNamespace":   updateNamespace,
	"AdminService/DeleteNamespace":   deleteNamespace,
	"AdminService/Flush":             flush,
	"AdminService/Backup":            backup,
	"AdminService/Reembed":           reembed,
	"AdminService/UndoWrites":        undoWrites,
	"AdminService/ListQuarantined":   listQuarantined,
	"AdminService/ReviewQuarantined": reviewQuarantined,
}

func getInfo(client *memory.Client, _ *fields) call {
	return func(ctx context.Context) (proto.Message, error) {
		info, err := client.Info(ctx)
		if err != nil {
			return nil, err
		}
		response := &memoryv1.GetInfoResponse{
			Version:            info.Version,
			Store:              info.Store,
			Embedder:           info.Embedder,
			EmbeddingDimension: int32(info.EmbeddingDimension),
			Llm:                info.LLM,
			StartTime:          timeOf(info.StartTime),
			Limits:             info.Limits,
			Reranker:           info.Reranker,
			ServerName:         info.ServerName,
		}
		if progress := info.Backup; progress != nil {
			response.Backup = &memoryv1.BackupProgress{
				Name: progress.Name, DoneBytes: progress.DoneBytes, TotalBytes: progress.TotalBytes,
			}
		}
		return response, nil
	}
}

func listNamespaces(client *memory.Client, in *fields) call {
	prefix, option := in.text("prefix"), memory.WithEntriesPerPage(in.number("page_size"))
	return func(ctx context.Context) (proto.Message, error) {
		summaries, err := collected(client.ListNamespaces(ctx, prefix, option), summaryOf)
		return &memoryv1.ListNamespacesResponse{Namespaces: summaries}, err
	}
}

func summaryOf(summary memory.NamespaceSummary) *memoryv1.NamespaceSummary {
	return &memoryv1.NamespaceSummary{
		Namespace:  summary.Namespace,
		ItemCount:  summary.ItemCount,
		Revision:   summary.Revision,
		CreateTime: timeOf(summary.CreateTime),
		Settings:   settingsOf(summary.Settings),
	}
}

func settingsOf(settings *memory.NamespaceSettings) *memoryv1.NamespaceSettings {
	if settings == nil {
		return nil
	}
	message := &memoryv1.NamespaceSettings{TimeZone: settings.TimeZone, Version: settings.Version}
	if settings.DefaultTTL != 0 {
		message.DefaultTtl = durationpb.New(settings.DefaultTTL)
	}
	return message
}

func updateNamespace(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	update := memory.NamespaceUpdate{ExpectedVersion: in.optionalInteger("expected_version")}
	zone, ttl := in.text("time_zone"), in.duration("default_ttl")
	paths := in.mask("update_mask")
	if !in.has("update_mask") {
		paths = nil
		if zone != "" {
			paths = append(paths, "time_zone")
		}
		if ttl != 0 {
			paths = append(paths, "default_ttl")
		}
	}
	for _, path := range paths {
		switch path {
		case "time_zone":
			update.TimeZone = &zone
		case "default_ttl":
			update.DefaultTTL = &ttl
		default:
			in.refuse("update_mask")
		}
	}
	if zone != "" && update.TimeZone == nil || ttl != 0 && update.DefaultTTL == nil {
		in.refuse("update_mask")
	}
	return func(ctx context.Context) (proto.Message, error) {
		settings, err := client.UpdateNamespace(ctx, update)
		return &memoryv1.UpdateNamespaceResponse{Settings: settingsOf(settings)}, err
	}
}

func getNamespaceStats(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	var options []memory.StatsOption
	if in.flag("include_usage") {
		options = append(options, memory.WithUsage())
	}
	return func(ctx context.Context) (proto.Message, error) {
		stats, err := client.NamespaceStats(ctx, options...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.GetNamespaceStatsResponse{
			Namespace:          stats.Namespace,
			Revision:           stats.Revision,
			ItemCount:          stats.ItemCount,
			StateCount:         stats.StateCount,
			EmbeddedCount:      stats.EmbeddedCount,
			EmbeddingDimension: int32(stats.EmbeddingDimension),
			EmbeddingModel:     stats.EmbeddingModel,
			CreateTime:         timeOf(stats.CreateTime),
			Index: &memoryv1.IndexStats{
				Loaded:      stats.Index.Loaded,
				Kind:        stats.Index.Kind,
				GraphCount:  stats.Index.GraphCount,
				ExactCount:  stats.Index.ExactCount,
				MemoryBytes: stats.Index.MemoryBytes,
				EfSearch:    int32(stats.Index.EfSearch),
			},
			PendingCount: stats.PendingCount,
			Settings:     settingsOf(stats.Settings),
			Usage:        namespaceUsageOf(stats.Usage),
		}, nil
	}
}

func namespaceUsageOf(usage *memory.NamespaceUsage) *memoryv1.NamespaceUsage {
	if usage == nil {
		return nil
	}
	return &memoryv1.NamespaceUsage{
		ByteCount:          usage.ByteCount,
		CallCount:          usage.CallCount,
		CallCountStartTime: timeOf(usage.CallCountStartTime),
	}
}

func reembed(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	options := &memory.ReembedOptions{ReplaceClientVectors: in.flag("replace_client_vectors")}
	return func(ctx context.Context) (proto.Message, error) {
		begun, err := client.Reembed(ctx, options)
		if err != nil {
			return nil, err
		}
		return &memoryv1.ReembedResponse{
			PendingCount:   begun.PendingCount,
			EmbeddingModel: begun.EmbeddingModel,
			Revision:       begun.Revision,
		}, nil
	}
}

func undoWrites(client *memory.Client, in *fields) call {
	client, options := scoped(client, in), writeOptions(in)
	undo := memory.UndoOptions{
		Writer:       in.text("writer"),
		CredentialID: in.text("credential_id"),
		AnyWriter:    in.flag("any_writer"),
		Since:        in.time("since"),
		DryRun:       in.flag("dry_run"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		done, err := client.UndoWrites(ctx, undo, options...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.UndoWritesResponse{
			RemovedCount:      done.RemovedCount,
			RestoredCount:     done.RestoredCount,
			UnrestorableCount: done.UnrestorableCount,
			UnrestorableIds:   done.UnrestorableIDs,
			Revision:          done.Revision,
		}, nil
	}
}

func deleteNamespace(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	return func(ctx context.Context) (proto.Message, error) {
		removed, err := client.DeleteNamespace(ctx)
		return &memoryv1.DeleteNamespaceResponse{
			RemovedItemCount: removed.ItemCount, RemovedStateCount: removed.StateCount,
		}, err
	}
}

func flush(client *memory.Client, _ *fields) call {
	return func(ctx context.Context) (proto.Message, error) {
		took, err := client.Flush(ctx)
		return &memoryv1.FlushResponse{Duration: durationpb.New(took)}, err
	}
}

func backup(client *memory.Client, in *fields) call {
	name := in.text("name")
	return func(ctx context.Context) (proto.Message, error) {
		written, err := client.Backup(ctx, name)
		if err != nil {
			return nil, err
		}
		return &memoryv1.BackupResponse{
			Name:           written.Name,
			SizeBytes:      written.SizeBytes,
			Checksum:       written.Checksum,
			NamespaceCount: written.NamespaceCount,
			ItemCount:      written.ItemCount,
			Duration:       durationpb.New(written.Duration),
		}, nil
	}
}
