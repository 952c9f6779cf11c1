package memory_test

import (
	"testing"

	memory "github.com/memory-service/memory-service/clients/go"
)

func TestValuesOfALabelAreListedPageByPage(t *testing.T) {
	client := dial(t)
	var items []*memory.Item
	for _, value := range []string{"b", "c", "a", "b"} {
		items = append(items, &memory.Item{Content: "x", Labels: map[string]string{"k": value}})
	}
	ok[[]*memory.Item](t)(client.BatchAdd(soon(t), items))
	var listed []memory.LabelValue
	for value, err := range client.ListLabelValues(soon(t), "k", "", memory.WithEntriesPerPage(1)) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, value)
	}
	equal(t, listed, []memory.LabelValue{{Value: "a", Count: 1}, {Value: "b", Count: 2}, {Value: "c", Count: 1}})
	for value, err := range client.ListLabelValues(soon(t), "k", "b") {
		if err != nil {
			t.Fatal(err)
		}
		equal(t, value.Value, "b")
	}
	wantError(t, firstError(client.ListLabelValues(soon(t), "", "")), memory.ErrInvalidArgument)
}
