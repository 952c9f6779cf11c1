package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// fields reads a request. It notes which fields are read, so that check finds a field that an adapter
// ignores, before the call is made.
type fields struct {
	message  protoreflect.Message
	isRead   map[protoreflect.Name]bool
	children []*fields
	refused  []string
}

func fieldsOf(message proto.Message) *fields {
	return &fields{message: message.ProtoReflect(), isRead: map[protoreflect.Name]bool{}}
}

// check returns an inexpressible error for the first field that is set but was not read, or whose value
// the client cannot express.
func (f *fields) check() error {
	if len(f.refused) > 0 {
		return inexpressible{f.refused[0]}
	}
	var err error
	f.message.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !f.isRead[field.Name()] {
			err = inexpressible{f.path(field.Name())}
		}
		return err == nil
	})
	for _, child := range f.children {
		if err == nil {
			err = child.check()
		}
	}
	return err
}

func (f *fields) path(name protoreflect.Name) string {
	return fmt.Sprintf("%s.%s", f.message.Descriptor().Name(), name)
}

// refuse notes that the client cannot express the value of a field.
func (f *fields) refuse(name protoreflect.Name) {
	f.refused = append(f.refused, f.path(name))
}

// field finds a field and notes that it is read.
func (f *fields) field(name protoreflect.Name) protoreflect.FieldDescriptor {
	field := f.message.Descriptor().Fields().ByName(name)
	if field == nil {
		panic("there is no " + f.path(name))
	}
	f.isRead[name] = true
	return field
}

func (f *fields) get(name protoreflect.Name) protoreflect.Value {
	return f.message.Get(f.field(name))
}

// has reports whether a field is set; that does not count as reading it.
func (f *fields) has(name protoreflect.Name) bool {
	return f.message.Has(f.message.Descriptor().Fields().ByName(name))
}

// required refuses a request without a field that the client's method always sends.
func (f *fields) required(name protoreflect.Name) {
	if !f.has(name) {
		f.refuse(name)
	}
}

func (f *fields) text(name protoreflect.Name) string   { return f.get(name).String() }
func (f *fields) flag(name protoreflect.Name) bool     { return f.get(name).Bool() }
func (f *fields) integer(name protoreflect.Name) int64 { return f.get(name).Int() }
func (f *fields) number(name protoreflect.Name) int    { return int(f.get(name).Int()) }
func (f *fields) float(name protoreflect.Name) float64 { return f.get(name).Float() }

func (f *fields) texts(name protoreflect.Name) []string {
	list := f.get(name).List()
	var texts []string
	for i := range list.Len() {
		texts = append(texts, list.Get(i).String())
	}
	return texts
}

func (f *fields) optionalText(name protoreflect.Name) *string {
	return optional(f, name, protoreflect.Value.String)
}

func (f *fields) optionalInteger(name protoreflect.Name) *int64 {
	return optional(f, name, protoreflect.Value.Int)
}

func (f *fields) optionalNumber(name protoreflect.Name) *int {
	return optional(f, name, func(value protoreflect.Value) int { return int(value.Int()) })
}

func (f *fields) optionalFloat(name protoreflect.Name) *float64 {
	return optional(f, name, protoreflect.Value.Float)
}

// optional reads a field that distinguishes "not given" from zero.
func optional[T any](f *fields, name protoreflect.Name, read func(protoreflect.Value) T) *T {
	value := read(f.get(name))
	if !f.has(name) {
		return nil
	}
	return &value
}

func (f *fields) labels(name protoreflect.Name) map[string]string {
	labels := map[string]string{}
	f.get(name).Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		labels[key.String()] = value.String()
		return true
	})
	return labels
}

// enum reads an enumeration as the client writes it: the name without its prefix, in lower case.
func (f *fields) enum(name protoreflect.Name) string {
	return f.enumText(f.field(name), f.get(name).Enum())
}

func (f *fields) enums(name protoreflect.Name) []string {
	list := f.get(name).List()
	var texts []string
	for i := range list.Len() {
		texts = append(texts, f.enumText(f.field(name), list.Get(i).Enum()))
	}
	return texts
}

func (f *fields) enumText(field protoreflect.FieldDescriptor, number protoreflect.EnumNumber) string {
	value := field.Enum().Values().ByNumber(number)
	if value == nil {
		f.refuse(field.Name())
		return ""
	}
	if number == 0 {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(string(value.Name()), enumPrefix(field.Enum())))
}

// enumPrefix returns the prefix of the names of an enumeration's values.
func enumPrefix(enum protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(enum.Values().ByNumber(0).Name()), "UNSPECIFIED")
}

// child reads a message inside this one. Nil: unset.
func (f *fields) child(name protoreflect.Name) *fields {
	value := f.get(name)
	if !f.has(name) {
		return nil
	}
	return f.adopt(value.Message())
}

func (f *fields) childList(name protoreflect.Name) []*fields {
	list := f.get(name).List()
	var all []*fields
	for i := range list.Len() {
		all = append(all, f.adopt(list.Get(i).Message()))
	}
	return all
}

func (f *fields) adopt(message protoreflect.Message) *fields {
	child := fieldsOf(message.Interface())
	f.children = append(f.children, child)
	return child
}

// known reads a message of one of protobuf's own types. False: unset.
func known[M proto.Message](f *fields, name protoreflect.Name) (M, bool) {
	message, _ := f.get(name).Message().Interface().(M)
	return message, f.has(name)
}

// time reads a time. The client's zero time means none, so a zero time that is set is refused.
func (f *fields) time(name protoreflect.Name) time.Time {
	timestamp, isSet := known[*timestamppb.Timestamp](f, name)
	if !isSet {
		return time.Time{}
	}
	if timestamp.AsTime().IsZero() {
		f.refuse(name)
	}
	return timestamp.AsTime()
}

// duration reads a duration. The client's zero means none, so a zero that is set is refused.
func (f *fields) duration(name protoreflect.Name) time.Duration {
	given := f.optionalDuration(name)
	if given == nil {
		return 0
	}
	if *given == 0 {
		f.refuse(name)
	}
	return *given
}

func (f *fields) optionalDuration(name protoreflect.Name) *time.Duration {
	duration, isSet := known[*durationpb.Duration](f, name)
	if !isSet {
		return nil
	}
	converted := duration.AsDuration()
	if converted == math.MaxInt64 || converted == math.MinInt64 {
		f.refuse(name) // Beyond the 292 years of a time.Duration.
	}
	return &converted
}

func (f *fields) object(name protoreflect.Name) map[string]any {
	object, isSet := known[*structpb.Struct](f, name)
	if !isSet {
		return nil
	}
	return object.AsMap()
}

func (f *fields) value(name protoreflect.Name) any {
	value, _ := known[*structpb.Value](f, name)
	return value.AsInterface()
}

// mask reads a field mask. For the client an empty mask means none, so it is refused.
func (f *fields) mask(name protoreflect.Name) []string {
	mask, isSet := known[*fieldmaskpb.FieldMask](f, name)
	if isSet && len(mask.GetPaths()) == 0 {
		f.refuse(name)
	}
	return mask.GetPaths()
}
