package memory_test

import (
	"testing"

	memory "github.com/memory-service/memory-service/clients/go"
)

func TestVersionsAreListedReadAndRedacted(t *testing.T) {
	client := dial(t)
	item := ok[*memory.Item](t)(client.AddItem(soon(t), &memory.Item{ID: "a", Content: "one"}))
	_ = ok[*memory.Item](t)(client.Update(soon(t), &memory.Item{ID: "a", Content: "two"}))
	var kinds []memory.VersionKind
	for version, err := range client.ListItemVersions(soon(t), "a", memory.WithEntriesPerPage(1)) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, version.Kind)
	}
	equal(t, kinds, []memory.VersionKind{memory.VersionCurrent, memory.VersionReplaced})
	equal(t, ok[*memory.Item](t)(client.GetAt(soon(t), "a", item.Revision)).Content, item.Content)
	equal(t, ok[int64](t)(client.RedactVersion(soon(t), "a", item.Revision)), int64(2))
	_, err := client.GetAt(soon(t), "a", item.Revision)
	equal(t, wantError(t, err, memory.ErrNotFound).Reason, memory.ReasonVersionNotFound)
	_, err = client.RedactVersion(soon(t), "a", 2)
	equal(t, wantError(t, err, memory.ErrFailedPrecondition).Reason, memory.ReasonVersionIsCurrent)
}
