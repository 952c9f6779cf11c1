module github.com/memory-service/memory-service/clients/go/agentgo

go 1.25.0

require github.com/memory-service/memory-service/clients/go v0.1.0

replace github.com/memory-service/memory-service/clients/go => ../
