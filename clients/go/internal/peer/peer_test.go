package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	memory "github.com/memory-service/memory-service/clients/go"
)

// nowhere is an address without a server, for requests that the peer answers without one.
const nowhere = "127.0.0.1:9"

func answers(t *testing.T, lines ...string) []answer {
	t.Helper()
	var output bytes.Buffer
	if err := serve(nowhere, strings.NewReader(strings.Join(lines, "\n")), &output); err != nil {
		t.Fatal(err)
	}
	var given []answer
	for decoder := json.NewDecoder(&output); decoder.More(); {
		var one answer
		if err := decoder.Decode(&one); err != nil {
			t.Fatal(err)
		}
		given = append(given, one)
	}
	return given
}

func TestEveryRPCHasAnAdapter(t *testing.T) {
	count := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("memory_service.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				method := methods.Get(j)
				name := fmt.Sprintf("%s/%s", method.Parent().Name(), method.Name())
				isStream := method.IsStreamingClient() || method.IsStreamingServer()
				if adapters[name] == nil && !isStream {
					t.Errorf("%s has no adapter", name)
				}
				count++
			}
		}
		return true
	})
	if want := len(adapters) + 3; count != want {
		t.Errorf("there are %d RPCs and %d adapters", count, want)
	}
}

// Every adapter must read or refuse each field; one that panics for a field of another request than it
// reads shows here too.
func TestAdaptersReadEmptyRequests(t *testing.T) {
	client, err := memory.Dial(nowhere)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for name, adapt := range adapters {
		in, err := requestOf(name, json.RawMessage("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if adapt(client, in) == nil {
			t.Errorf("%s makes no call", name)
		}
	}
}

func TestFieldsWithoutAPlaceAreInexpressible(t *testing.T) {
	cases := []struct{ call, request, where string }{
		{"MemoryService/List", `{"pageToken": "x"}`, "ListRequest.page_token"},
		{"MemoryService/Add", `{"item": {"text": "x", "revision": "3"}}`, "MemoryItem.revision"},
		{"MemoryService/DeleteWhere", `{"pageToken": "x"}`, "DeleteWhereRequest.page_token"},
		{"MemoryService/BatchWrite", `{"operations": [{"add": {"item": {"revision": "3"}}}]}`, "MemoryItem.revision"},
		{"MemoryService/BatchWrite", `{"operations": [{"saveState": {"key": "k"}}]}`, "SaveStateOperation.value"},
		{"MemoryService/BatchWrite", `{"operations": [{"saveState": {"value": 1, "ttl": "0s"}}]}`, "SaveStateOperation.ttl"},
		{"StateService/SaveState", `{"key": "k"}`, "SaveStateRequest.value"},
		{"UserMemoryService/SaveMemory", `{"ttl": "0s"}`, "SaveMemoryRequest.ttl"},
		{"UserMemoryService/SaveMemory", `{"source": {"origin": "MEMORY_ORIGIN_SAVED"}}`, "MemorySource.origin"},
		{"UserMemoryService/UpdateMemory", `{"memory": {"importance": {"base": 3}}}`, "Importance.base"},
		{"InteractionService/StoreInteraction", `{"createTime": "0001-01-01T00:00:00Z"}`, "StoreInteractionRequest.create_time"},
		{"KnowledgeService/AddDocument", `{"document": {"version": "1"}}`, "Document.version"},
		{"OverseerService/CheckRelevance", `{"decideBy": 7}`, "CheckRelevanceRequest.decide_by"},
		{"OverseerService/CheckRelevance", `{"decideBy": "DECIDED_BY_DICE"}`, "DECIDED_BY_DICE"},
	}
	for _, refused := range cases {
		t.Run(refused.where, func(t *testing.T) {
			line := fmt.Sprintf(`{"call": %q, "request": %s}`, refused.call, refused.request)
			given := answers(t, line)
			if len(given) != 1 || !strings.Contains(given[0].Inexpressible, refused.where) {
				t.Errorf("%s is answered by %+v", line, given)
			}
		})
	}
}

func TestImportsOfBatchesThatTheClientDoesNotMake(t *testing.T) {
	const one, two = `{"items": [{"text": "a"}]}`, `{"items": [{"text": "b"}, {"text": "c"}]}`
	for _, requests := range []string{one + "," + two, two + "," + one + "," + two} {
		given := answers(t, `{"call": "MemoryService/Import", "requests": [`+requests+`]}`)
		if given[0].Inexpressible != "ImportRequest.items" {
			t.Errorf("%s is answered by %+v", requests, given)
		}
	}
}

func TestLinesMayBeLong(t *testing.T) {
	long := fmt.Sprintf(`{"call": "MemoryService/List", "request": {"pageToken": %q}}`, strings.Repeat("x", 5<<20))
	short := `{"call": "MemoryService/List", "request": {"pageToken": "x"}}`
	if given := answers(t, long, short); len(given) != 2 {
		t.Errorf("two lines have %d answers", len(given))
	}
}
