package memory

import (
	"encoding/json"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// neverRetried are the calls without a request id: the server could not tell a retry from a new call.
var neverRetried = map[protoreflect.Name]bool{"Import": true, "Backup": true, "DeleteNamespace": true, "ReviewQuarantined": true}

var protoFiles = []protoreflect.FileDescriptor{
	memoryv1.File_memory_service_v1_memory_proto,
	memoryv1.File_memory_service_v1_state_proto,
	memoryv1.File_memory_service_v1_user_memory_proto,
	memoryv1.File_memory_service_v1_interaction_proto,
	memoryv1.File_memory_service_v1_knowledge_proto,
	memoryv1.File_memory_service_v1_session_proto,
	memoryv1.File_memory_service_v1_overseer_proto,
	memoryv1.File_memory_service_v1_admin_proto,
}

type methodName struct {
	Service string `json:"service"`
	Method  string `json:"method"`
}

// serviceConfig returns gRPC's service config: which calls are retried, when and how often. With several
// servers, the client itself moves on to another when one is unavailable, which gRPC does not know of.
func serviceConfig(maxAttempts int, oneOfSeveral bool) string {
	if maxAttempts == 1 {
		return "{}"
	}
	retryable := []string{"UNAVAILABLE", "CANCELLED", "RESOURCE_EXHAUSTED"}
	if oneOfSeveral {
		retryable = []string{"RESOURCE_EXHAUSTED"}
	}
	policy := map[string]any{
		"maxAttempts":       maxAttempts,
		"initialBackoff":    "0.1s",
		"maxBackoff":        "2s",
		"backoffMultiplier": 2,
		// CANCELLED: the server shut down as the call arrived; this side did not cancel it.
		// RESOURCE_EXHAUSTED: the server is overloaded. It reports when to retry, and for a request that
		// is too large that a retry is useless.
		"retryableStatusCodes": retryable,
	}
	config, err := json.Marshal(map[string]any{
		"methodConfig": []any{map[string]any{"name": retriedMethods(), "retryPolicy": policy}},
		// A client whose calls mostly fail stops retrying.
		"retryThrottling": map[string]any{"maxTokens": 100, "tokenRatio": 0.1},
	})
	if err != nil {
		panic(err) // Unreachable: strings and numbers can always be written as JSON.
	}
	return string(config)
}

func retriedMethods() []methodName {
	var names []methodName
	for _, file := range protoFiles {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				if name := service.Methods().Get(j).Name(); !neverRetried[name] {
					names = append(names, methodName{string(service.FullName()), string(name)})
				}
			}
		}
	}
	return names
}
