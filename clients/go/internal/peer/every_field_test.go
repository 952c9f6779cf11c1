package main

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// notSent are the fields of requests that the client cannot send: it fetches pages itself, and callers do
// not set what only the server sets. Without a message name: in every message.
var notSent = []string{
	// GetAt takes no options; the corpus tests it.
	"page_token", "GetRequest.revision",
	"MemoryItem.update_time", "MemoryItem.revision", "MemoryItem.kind", "MemoryItem.facet_json",
	"MemorySource.origin", "MemorySource.memory_ids", "MemorySource.model",
	"Importance.base", "Importance.boosts", "Importance.reductions", "Importance.decay_factor",
	"Importance.current_score", "Importance.decided_by",
	"UserMemory.version", "UserMemory.status", "UserMemory.superseded_by", "UserMemory.supersedes",
	"UserMemory.original_content", "UserMemory.source", "UserMemory.create_time",
	"UserMemory.update_time", "UserMemory.revision", "UserMemory.provenance",
	"Document.source_item_id", "Document.update_time", "Document.version", "Document.fragment_count",
	"Document.size_bytes", "Document.preview", "Document.revision", "Document.provenance",
	"OriginalMessage.provenance",
	"Session.item_count", "Session.first_time", "Session.last_time", "Session.version", "Session.update_time",
	"Session.forked_from", "Session.participants",
}

// notReturned are the fields of responses that the client does not return: those of pages, which it
// joins, and a time to live, which responses never have. It returns only the items that were not skipped.
var notReturned = []string{
	"next_page_token", "UserMemory.ttl", "Document.ttl",
	"ListResponse.revision", "ListLabelValuesResponse.revision", "ListMemoriesResponse.revision",
	"ListDocumentsResponse.revision", "ListFilesResponse.revision",
	"AddResponse.skipped", "BatchAddResponse.skipped_count", "DeleteWhereResponse.revision",
	"ListSessionsResponse.revision", "DeleteSessionResponse.revision",
}

// full returns a message with all fields set except those left out.
func full(name protoreflect.FullName, leftOut []string) proto.Message {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		panic(err)
	}
	message := kind.New()
	if set, ok := wellKnown[name]; ok {
		set(message)
		return message.Interface()
	}
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		path := fmt.Sprintf("%s.%s", message.Descriptor().Name(), field.Name())
		isSecond := field.ContainingOneof() != nil && field.ContainingOneof().Fields().Get(0) != field
		if isSecond || slices.Contains(leftOut, string(field.Name())) || slices.Contains(leftOut, path) {
			continue
		}
		setField(message, field, leftOut)
	}
	return message.Interface()
}

func setField(message protoreflect.Message, field protoreflect.FieldDescriptor, leftOut []string) {
	switch {
	case field.IsList():
		message.Mutable(field).List().Append(fullValue(field, leftOut))
	case field.IsMap():
		key := protoreflect.ValueOfString("key").MapKey()
		message.Mutable(field).Map().Set(key, fullValue(field.MapValue(), leftOut))
	default:
		message.Set(field, fullValue(field, leftOut))
	}
}

// fullValue returns a value that is not the default. All numbers are equal, because some revisions must be.
func fullValue(field protoreflect.FieldDescriptor, leftOut []string) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return protoreflect.ValueOfMessage(full(field.Message().FullName(), leftOut).ProtoReflect())
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(field.Enum().Values().Get(1).Number())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("a " + string(field.Name()))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("bytes"))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(7)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(0.25)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(0.25)
	}
	panic("no value for " + field.FullName())
}

var wellKnown = map[protoreflect.FullName]func(protoreflect.Message){
	"google.protobuf.Timestamp": written(`"2026-05-17T12:00:00.123456Z"`),
	"google.protobuf.Duration":  written(`"90.5s"`),
	"google.protobuf.FieldMask": written(`"labels,validFromTime"`),
	"google.protobuf.Struct":    written(`{"list": [1, "two", {"three": null}], "yes": true}`),
	"google.protobuf.Value":     written(`{"list": [1, "two", {"three": null}], "yes": true}`),
}

func written(text string) func(protoreflect.Message) {
	return func(message protoreflect.Message) {
		if err := protojson.Unmarshal([]byte(text), message.Interface()); err != nil {
			panic(err)
		}
	}
}

// recorder is a gRPC server that answers every call with a full response and keeps the request.
type recorder struct {
	request  proto.Message
	response proto.Message
}

func (r *recorder) handle(_ any, stream grpc.ServerStream) error {
	r.request = r.request.ProtoReflect().New().Interface()
	if err := stream.RecvMsg(r.request); err != nil {
		return err
	}
	return stream.SendMsg(r.response)
}

// dial starts the server and connects to it.
func (r *recorder) dial(t *testing.T) *memory.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(r.handle))
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	client, err := memory.Dial(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// exchange makes the peer send a request, and answers it. The request must arrive unchanged, and the peer
// must write the response.
func (r *recorder) exchange(t *testing.T, client *memory.Client, name string, request, response proto.Message) {
	t.Helper()
	r.request, r.response = request, response
	given, err := answerTo(client, line(t, name, request))
	if err != nil || given.Response == nil {
		t.Fatalf("the answer is %+v, %v", given, err)
	}
	if !proto.Equal(r.request, request) {
		t.Errorf("what arrived is\n%v\nnot\n%v", r.request, request)
	}
	returned := response.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal(given.Response, returned); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(returned, response) {
		t.Errorf("what came back is\n%v\nnot\n%v", returned, response)
	}
}

// Each RPC is called with a request that has every field that the client can send.
func TestEveryFieldArrivesAndComesBack(t *testing.T) {
	kept := &recorder{}
	client := kept.dial(t)
	for name := range adapters {
		t.Run(name, func(t *testing.T) {
			method, err := methodOf(name)
			if err != nil {
				t.Fatal(err)
			}
			request := full(method.Input().FullName(), notSent)
			if update, ok := request.(*memoryv1.UpdateNamespaceRequest); ok {
				update.UpdateMask.Paths = []string{"time_zone", "default_ttl"}
			}
			kept.exchange(t, client, name, request, full(method.Output().FullName(), notReturned))
		})
	}
}

// Items and parts have variants: each one is sent and returned.
func TestEveryContentArrivesAndComesBack(t *testing.T) {
	kept := &recorder{}
	client := kept.dial(t)
	parts := []string{
		`"text": "x"`, `"data": {"n": 1}`, `"toolCall": {"toolCallId": "c", "name": "n", "arguments": {"q": [1]}}`,
		`"toolCallResult": {"toolCallId": "c", "name": "n", "result": "r", "isError": true}`,
		`"binary": {"name": "", "url": "u", "mimeType": "m", "content": "AAE=", "contentLength": "-1"}`,
	}
	message := `"chatMessage": {"role": "ROLE_TOOL", "parts": [{` + strings.Join(parts, "}, {") + `}]}`
	for _, content := range []string{`"data": {}`, parts[0], parts[1], parts[3], message} {
		request, response := &memoryv1.AddRequest{}, &memoryv1.AddResponse{}
		written(fmt.Sprintf(`{"requestId": "r", "item": {%s}}`, content))(request.ProtoReflect())
		written(fmt.Sprintf(`{"item": {"revision": 1, %s}, "revision": 1}`, content))(response.ProtoReflect())
		kept.exchange(t, client, "MemoryService/Add", request, response)
	}
}

// A batch has several kinds of operations: each one is sent with every field.
func TestEveryOperationArrives(t *testing.T) {
	kept := &recorder{}
	client := kept.dial(t)
	operations := (&memoryv1.WriteOperation{}).ProtoReflect().Descriptor().Fields()
	for i := range operations.Len() {
		field := operations.Get(i)
		operation := &memoryv1.WriteOperation{}
		setField(operation.ProtoReflect(), field, notSent)
		request := &memoryv1.BatchWriteRequest{
			RequestId: "r", Operations: []*memoryv1.WriteOperation{operation, operation},
		}
		response := full("memory_service.v1.BatchWriteResponse", notReturned)
		kept.exchange(t, client, "MemoryService/BatchWrite", request, response)
	}
}

func TestWhatWasSkippedComesBack(t *testing.T) {
	kept := &recorder{}
	client := kept.dial(t)
	item := &memoryv1.MemoryItem{Id: "a", Content: &memoryv1.MemoryItem_Text{Text: "x"}}
	skip := memoryv1.OnDuplicate_ON_DUPLICATE_SKIP
	kept.exchange(t, client, "MemoryService/Add",
		&memoryv1.AddRequest{RequestId: "r", Item: item, OnDuplicate: skip},
		&memoryv1.AddResponse{Skipped: true})
	kept.exchange(t, client, "MemoryService/BatchAdd",
		&memoryv1.BatchAddRequest{RequestId: "r", Items: []*memoryv1.MemoryItem{item, item}, OnDuplicate: skip},
		&memoryv1.BatchAddResponse{Items: []*memoryv1.MemoryItem{item}, SkippedCount: 1})
}

func line(t *testing.T, name string, request proto.Message) []byte {
	t.Helper()
	text, err := protojson.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := json.Marshal(step{Call: name, Request: text})
	if err != nil {
		t.Fatal(err)
	}
	return asked
}
