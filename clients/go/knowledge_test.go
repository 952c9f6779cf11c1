package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/llms"
)

func addDocument(t *testing.T, client *memory.Client, id, text string) *memory.Document {
	t.Helper()
	return ok[*memory.Document](t)(client.AddDocument(soon(t), &memory.Document{ID: id, Text: text}, nil))
}

// prose returns a text of the given number of different sentences, longer in bytes than in code points.
func prose(sentences int) string {
	var text strings.Builder
	for i := range sentences {
		fmt.Fprintf(&text, "Sentence %d über sailing and what the wind did then. ", i)
	}
	return text.String()
}

func TestDocumentsReturnAsTheyWereAdded(t *testing.T) {
	client := dial(t)
	text := prose(40)
	added := ok[*memory.Document](t)(client.AddDocument(soon(t), &memory.Document{
		ID: "log", Text: text, Title: "A log", Source: "log.txt", SessionID: "s1", CreateTime: noon, TTL: time.Hour,
		Labels: map[string]string{"topic": "boats"}, Metadata: map[string]any{"pages": 2.0},
	}, &memory.AddDocumentOptions{
		Split: &memory.SplitOptions{MaxCharacters: memory.Ptr(200), OverlapCharacters: memory.Ptr(0)},
	}))
	if added.Text != "" || added.Version != 1 || added.SizeBytes != int64(len(text)) || added.ExpireTime.IsZero() {
		t.Errorf("added is %+v", added)
	}
	if added.FragmentCount < 10 {
		t.Fatalf("there are %d fragments", added.FragmentCount)
	}
	loaded := ok[*memory.LoadedDocument](t)(client.GetDocument(
		soon(t), "log", &memory.GetDocumentOptions{IncludeFragments: true, PageSize: 3}))
	if loaded.Text != text || loaded.Title != "A log" || loaded.Source != "log.txt" || !loaded.CreateTime.Equal(noon) {
		t.Errorf("loaded is %+v", loaded.Document)
	}
	if loaded.Metadata["pages"] != 2.0 || loaded.Labels["topic"] != "boats" || loaded.NamespaceRevision == 0 {
		t.Errorf("loaded is %+v", loaded.Document)
	}
	if len(loaded.Fragments) != added.FragmentCount {
		t.Fatalf("over all pages there are %d of %d fragments", len(loaded.Fragments), added.FragmentCount)
	}
	for index, fragment := range loaded.Fragments {
		if fragment.Index != index || text[fragment.StartByte:fragment.EndByte] != fragment.Text || fragment.DocumentID != "log" {
			t.Errorf("fragment %d is %+v", index, fragment)
		}
		if string([]rune(text)[fragment.StartOffset:fragment.EndOffset]) != fragment.Text {
			t.Errorf("fragment %d is elsewhere by code points", index)
		}
	}
}

func TestDocumentsAreReplacedByVersion(t *testing.T) {
	client := dial(t)
	addDocument(t, client, "d", "the first text")
	_, err := client.AddDocument(soon(t), &memory.Document{ID: "d", Text: "another text"}, nil)
	if failure := wantError(t, err, memory.ErrAlreadyExists); failure.Reason != memory.ReasonDocumentAlreadyExists {
		t.Errorf("the reason is %s", failure.Reason)
	}
	replace := &memory.AddDocumentOptions{Replace: true}
	_, err = client.AddDocument(soon(t), &memory.Document{ID: "d", Text: "another text"}, replace, memory.WithExpectedVersion(7))
	wantError(t, err, memory.ErrConflict)
	replaced := ok[*memory.Document](t)(client.AddDocument(
		soon(t), &memory.Document{ID: "d", Text: "another text"}, replace, memory.WithExpectedVersion(1)))
	if replaced.Version != 2 {
		t.Errorf("the version is %d", replaced.Version)
	}
	_, err = client.DeleteDocument(soon(t), "d", memory.WithExpectedVersion(1))
	wantError(t, err, memory.ErrConflict)
	removed := ok[*memory.RemovedDocument](t)(client.DeleteDocument(soon(t), "d"))
	if removed.FragmentCount != 1 || removed.Revision == 0 {
		t.Errorf("removed is %+v", removed)
	}
	_, err = client.GetDocument(soon(t), "d", nil)
	if failure := wantError(t, err, memory.ErrNotFound); failure.Reason != memory.ReasonDocumentNotFound {
		t.Errorf("the reason is %s", failure.Reason)
	}
	_, err = client.AddDocument(soon(t), nil, nil)
	wantError(t, err, memory.ErrInvalidArgument)
}

func TestListDocumentsPagesByItself(t *testing.T) {
	client := dial(t)
	for i := range 5 {
		addDocument(t, client, fmt.Sprintf("d%d", i), fmt.Sprintf("text number %d", i))
	}
	var ids []string
	for document, err := range client.ListDocuments(soon(t), &memory.ListDocumentsOptions{PageSize: 2, NewestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if document.Text != "" || document.Preview == "" {
			t.Errorf("in a list a document is %+v", document)
		}
		ids = append(ids, document.ID)
	}
	if got := strings.Join(ids, " "); got != "d4 d3 d2 d1 d0" {
		t.Errorf("listed are %s", got)
	}
}

func TestSearchFragments(t *testing.T) {
	client := dial(t)
	addDocument(t, client, "boats", "The mast is made of spruce.")
	addDocument(t, client, "pies", "The crust is made of butter.")
	found := ok[*memory.FragmentResults](t)(client.SearchFragments(soon(t), "mast", &memory.SearchFragmentsOptions{
		Mode: memory.RetrieveLexical, Explain: true, DocumentIDs: []string{"boats", "pies"},
	}))
	if len(found.Results) != 1 || found.Results[0].Document.ID != "boats" || found.Revision == 0 {
		t.Fatalf("found are %+v", found)
	}
	if result := found.Results[0]; result.Fragment.Text != "The mast is made of spruce." || len(result.Explanation) != 1 {
		t.Errorf("found is %+v", result)
	}
	all := ok[*memory.FragmentResults](t)(client.SearchFragments(soon(t), "made of", &memory.SearchFragmentsOptions{
		Limit: memory.Ptr(-1), PageSize: 1, Mode: memory.RetrieveLexical,
	}))
	if len(all.Results) != 2 {
		t.Errorf("in pages of 1 there are %d", len(all.Results))
	}
	_, err := client.SearchFragments(soon(t), "mast", &memory.SearchFragmentsOptions{Mode: "dowsing"})
	wantError(t, err, memory.ErrInvalidArgument)
}

func TestHandleMessageSavesWhatTheAgentSaid(t *testing.T) {
	client := dial(t)
	said := llms.NewAssistantMessage("The mast is made of spruce.")
	ok[*memory.Item](t)(client.AddItem(soon(t), &memory.Item{ID: "a1", SessionID: "room", Content: said}))
	idle := ok[*memory.HandledMessage](t)(client.HandleMessage(soon(t), "room", "how nice", nil))
	if idle.Outcome != memory.HandledNotACommand || idle.Document != nil || idle.Message != nil {
		t.Errorf("a remark is %+v", idle)
	}
	handled := ok[*memory.HandledMessage](t)(client.HandleMessage(soon(t), "room", "please keep it", &memory.HandleMessageOptions{
		Commands: []string{"keep it"}, MaxRecentMessages: memory.Ptr(3), Labels: map[string]string{"by": "hand"},
	}))
	if handled.Outcome != memory.HandledSaved || handled.Command != "keep it" || handled.Feedback == "" {
		t.Fatalf("a command is %+v", handled)
	}
	if handled.Message.ID != "a1" || handled.Document.SourceItemID != "a1" || handled.Document.Labels["by"] != "hand" {
		t.Errorf("saved is %+v", handled.Document)
	}
	if len(handled.Fragments) != 1 || !strings.Contains(handled.Document.Text, "spruce") {
		t.Errorf("saved is %+v", handled.Document)
	}
	_, err := client.HandleMessage(soon(t), "", "save this", nil)
	if failure := wantError(t, err, memory.ErrInvalidArgument); failure.Metadata["feedback"] == "" {
		t.Errorf("told is %v", failure.Metadata)
	}
}
