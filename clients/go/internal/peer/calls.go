package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	memory "github.com/memory-service/memory-service/clients/go"
)

// call makes a call whose request has been read, and returns its response message.
type call func(ctx context.Context) (proto.Message, error)

// adapter reads a request and returns its call.
type adapter func(client *memory.Client, in *fields) call

// adapters of the RPCs with one request and one response, by service and name.
var adapters = joined(
	memoryAdapters, stateAdapters, versionAdapters, adminAdapters,
	userMemoryAdapters, interactionAdapters, knowledgeAdapters, sessionAdapters, fileAdapters, overseerAdapters,
)

func joined(parts ...map[string]adapter) map[string]adapter {
	all := map[string]adapter{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// perform makes the call of a step.
func perform(ctx context.Context, client *memory.Client, asked *step) (*answer, error) {
	switch asked.Call {
	case "Iterate":
		return iterate(ctx, client, asked.Request)
	case "MemoryService/Import":
		return importRecords(ctx, client, asked)
	case "MemoryService/Watch":
		return watch(ctx, client, asked)
	case "MemoryService/Export":
		return export(ctx, client, asked)
	}
	adapt, ok := adapters[asked.Call]
	if !ok {
		return nil, fmt.Errorf("there is no adapter")
	}
	in, err := requestOf(asked.Call, asked.Request)
	if err != nil {
		return nil, err
	}
	made := adapt(client, in)
	if err := in.check(); err != nil {
		return nil, err
	}
	response, err := made(ctx)
	if err != nil {
		return nil, err
	}
	return answerOf(response)
}

func answerOf(response proto.Message) (*answer, error) {
	text, err := protojson.Marshal(response)
	return &answer{Response: text}, err
}

// requestOf parses the request of an RPC. The client cannot express a request that does not parse, such
// as one with an enumeration value that does not exist.
func requestOf(name string, text json.RawMessage) (*fields, error) {
	request, err := emptyRequest(name)
	if err != nil {
		return nil, err
	}
	text, isStar, err := withoutStar(text)
	if err != nil {
		return nil, err
	}
	if err := protojson.Unmarshal(text, request); err != nil {
		return nil, inexpressible{err.Error()}
	}
	if isStar {
		field := request.ProtoReflect().Descriptor().Fields().ByName("update_mask")
		mask := &fieldmaskpb.FieldMask{Paths: []string{"*"}}
		request.ProtoReflect().Set(field, protoreflect.ValueOfMessage(mask.ProtoReflect()))
	}
	return fieldsOf(request), nil
}

// withoutStar removes the update mask "*" from a request, which protojson rejects as a malformed path.
func withoutStar(text json.RawMessage) (rest json.RawMessage, isStar bool, err error) {
	var request map[string]json.RawMessage
	if err := json.Unmarshal(text, &request); err != nil {
		return nil, false, err
	}
	if string(request["updateMask"]) != `"*"` {
		return text, false, nil
	}
	delete(request, "updateMask")
	rest, err = json.Marshal(request)
	return rest, true, err
}

func emptyRequest(name string) (proto.Message, error) {
	method, err := methodOf(name)
	if err != nil {
		return nil, err
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return nil, err
	}
	return kind.New().Interface(), nil
}

// methodOf finds an RPC by its service and its name.
func methodOf(name string) (protoreflect.MethodDescriptor, error) {
	full := protoreflect.FullName("memory_service.v1." + strings.ReplaceAll(name, "/", "."))
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(full)
	if err != nil {
		return nil, err
	}
	method, ok := descriptor.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is no RPC", full)
	}
	return method, nil
}
