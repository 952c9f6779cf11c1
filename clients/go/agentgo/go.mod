module github.com/memory-service/memory-service/clients/go/agentgo

go 1.25.0

require (
	github.com/memory-service/memory-service/clients/go v0.1.0
	github.com/oopslink/agent-go v1.0.1
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/golang/mock v1.6.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/net v0.58.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260526163538-3dc84a4a5aaa // indirect
	google.golang.org/grpc v1.83.2 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
)

replace github.com/memory-service/memory-service/clients/go => ../
