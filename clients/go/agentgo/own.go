package agentgo

import (
	"reflect"
	"unsafe"

	agentmemory "github.com/oopslink/agent-go/pkg/core/memory"
	agentllms "github.com/oopslink/agent-go/pkg/support/llms"
)

// own returns the item in agent-go's own type with the same methods, if there is one: a GenericMemoryItem
// for what is no message, a ToolCallResultMemoryItem for a tool's result.
func (i *item) own() agentmemory.MemoryItem {
	if i.message == nil {
		generic := &agentmemory.GenericMemoryItem{}
		if setFields(generic, map[string]any{"id": i.id, "content": i.content, "createdAt": i.createdAt}) {
			return generic
		}
		return i
	}
	result, ok := i.content.(*agentllms.ToolCallResult)
	if ok && reflect.DeepEqual(i.message, toolMessage(result, i.createdAt)) {
		tool := &agentmemory.ToolCallResultMemoryItem{}
		if setFields(tool, map[string]any{"memoryId": i.id, "result": result, "timestamp": i.createdAt}) {
			return tool
		}
	}
	return i
}

// setFields sets the unexported fields of one of agent-go's items, whose constructors would choose another id
// and time. False: it has no such fields, as may be in another version of agent-go; then none is set.
func setFields[T any](made *T, fields map[string]any) bool {
	target := reflect.ValueOf(made).Elem()
	for name, value := range fields {
		field := target.FieldByName(name)
		if !field.IsValid() || (value != nil && !reflect.TypeOf(value).AssignableTo(field.Type())) {
			return false
		}
	}
	for name, value := range fields {
		if field := target.FieldByName(name); value != nil {
			reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(value))
		}
	}
	return true
}
