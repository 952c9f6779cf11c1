package memory

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// apply sets options. A nil option changes nothing.
func apply[S any, O ~func(S)](settings S, options []O) {
	for _, option := range options {
		if option != nil {
			option(settings)
		}
	}
}

// snakeCase returns the name that protobuf has for a name of Go.
func snakeCase(name string) string {
	var snake strings.Builder
	letters := []rune(name)
	for index, letter := range letters {
		isFirst := unicode.IsUpper(letter) && index > 0 &&
			(unicode.IsLower(letters[index-1]) || index+1 < len(letters) && unicode.IsLower(letters[index+1]))
		if isFirst {
			snake.WriteByte('_')
		}
		snake.WriteRune(unicode.ToLower(letter))
	}
	return snake.String()
}

// invalidTextIn returns the path of the first text in a message that is not UTF-8, such as
// "item.labels.topic". Empty: there is none.
func invalidTextIn(message protoreflect.Message, where string) string {
	found := ""
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		found = invalidTextOf(field, value, pathOf(field, where))
		return found == ""
	})
	return found
}

// pathOf appends a field to a path. JSON values are messages whose fields a caller does not know.
func pathOf(field protoreflect.FieldDescriptor, where string) string {
	if field.ParentFile().Package() == "google.protobuf" {
		return where
	}
	if where == "" {
		return string(field.Name())
	}
	return where + "." + string(field.Name())
}

func invalidTextOf(field protoreflect.FieldDescriptor, value protoreflect.Value, where string) string {
	switch {
	case field.IsMap():
		return invalidTextOfMap(field, value.Map(), where)
	case field.IsList():
		for index := range value.List().Len() {
			element := fmt.Sprintf("%s[%d]", where, index)
			if found := invalidSingle(field, value.List().Get(index), element); found != "" {
				return found
			}
		}
		return ""
	}
	return invalidSingle(field, value, where)
}

func invalidTextOfMap(field protoreflect.FieldDescriptor, entries protoreflect.Map, where string) string {
	found := ""
	entries.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		if !utf8.ValidString(key.String()) {
			found = where
		} else {
			found = invalidSingle(field.MapValue(), value, where+"."+key.String())
		}
		return found == ""
	})
	return found
}

func invalidSingle(field protoreflect.FieldDescriptor, value protoreflect.Value, where string) string {
	switch {
	case field.Message() != nil:
		return invalidTextIn(value.Message(), where)
	case field.Kind() == protoreflect.StringKind && !utf8.ValidString(value.String()):
		return where
	}
	return ""
}
