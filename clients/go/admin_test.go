package memory_test

import (
	"slices"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
)

func TestInfoDescribesTheServer(t *testing.T) {
	info := ok[*memory.ServerInfo](t)(dial(t).Info(soon(t)))
	if info.Version == "" || info.Store != "memory" || info.LLM != "none" || info.EmbeddingDimension == 0 ||
		info.Limits["text_bytes_max"] == 0 || info.Backup != nil || time.Since(info.StartTime) > time.Hour {
		t.Fatalf("%+v", info)
	}
}

func TestHealthTellsWhetherCallsAreTaken(t *testing.T) {
	client := dial(t)
	equal(t, ok[memory.HealthStatus](t)(client.Health(soon(t), "")), memory.HealthServing)
	service := "memory_service.v1.MemoryService"
	equal(t, ok[memory.HealthStatus](t)(client.Health(soon(t), service)), memory.HealthServing)
	_, err := client.Health(soon(t), "no.such.Service")
	wantError(t, err, memory.ErrNotFound)
}

func TestNamespacesAreListedDescribedAndDeleted(t *testing.T) {
	client := dial(t)
	prefix := namespaceOf(t)
	for _, name := range []string{"a", "b", "c"} {
		addTexts(t, client.Namespace(prefix+name), "x", "y")
	}
	var names []string
	for summary, err := range client.ListNamespaces(soon(t), prefix, memory.WithEntriesPerPage(2)) {
		if err != nil {
			t.Fatal(err)
		}
		equal(t, []int64{summary.ItemCount, summary.Revision}, []int64{2, 2})
		names = append(names, summary.Namespace)
	}
	equal(t, names, []string{prefix + "a", prefix + "b", prefix + "c"})

	gone := client.Namespace(prefix + "b")
	stats := ok[*memory.NamespaceStats](t)(gone.NamespaceStats(soon(t)))
	equal(t, []int64{stats.ItemCount, stats.StateCount, stats.EmbeddedCount, stats.Revision}, []int64{2, 0, 2, 2})
	if stats.EmbeddingDimension == 0 || stats.EmbeddingModel == "" || !slices.Contains([]string{"", "exact"}, stats.Index.Kind) {
		t.Fatalf("%+v", stats)
	}
	equal(t, ok[memory.Removed](t)(gone.DeleteNamespace(soon(t))), memory.Removed{ItemCount: 2})
	_, err := gone.NamespaceStats(soon(t))
	equal(t, wantError(t, err, memory.ErrNotFound).Reason, memory.ReasonNamespaceNotFound)
}

func TestABackupTellsWhatItWrote(t *testing.T) {
	client := dialTo(t, ownServer(t, t.TempDir()).address)
	addTexts(t, client, "x")
	ok[time.Duration](t)(client.Flush(soon(t)))
	summary := ok[*memory.BackupSummary](t)(client.Backup(soon(t), "first"))
	equal(t, []any{summary.Name, summary.NamespaceCount, summary.ItemCount}, []any{"first", int64(1), int64(1)})
	if summary.SizeBytes == 0 || summary.Checksum == "" || summary.Duration <= 0 {
		t.Fatalf("%+v", summary)
	}
	_, err := dial(t).Backup(soon(t), "")
	equal(t, wantError(t, err, memory.ErrUnsupported).Reason, memory.ReasonUnsupported)
}
