package memory_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/llms"
)

const notUTF8 = "caf\xff"

// notSent are fields that only the server sets: the client ignores them in an item that it returned.
var notSent = map[string]bool{
	"Item.UpdateTime": true, "Item.Revision": true, "Item.Kind": true, "Item.FacetJSON": true, "Item.Degraded": true,
	"Document.SourceItemID": true, "Document.Preview": true, "Document.Provenance": true, "Document.Degraded": true,
	"MemorySource.Origin": true, "MemorySource.MemoryIDs": true, "MemorySource.Model": true,
	"OriginalMessage.Provenance": true,
}

// fitting are values of types that have no plain ones.
var fitting = map[reflect.Type]any{
	reflect.TypeFor[context.Context]():    context.Background(),
	reflect.TypeFor[time.Time]():          noon,
	reflect.TypeFor[memory.MemoryItem]():  &memory.Item{Content: "tea"},
	reflect.TypeFor[*memory.Item]():       &memory.Item{Content: "tea"},
	reflect.TypeFor[memory.FileEdit]():    &memory.ReplaceText{OldText: "a", NewText: "b"},
	reflect.TypeFor[memory.UndoOptions](): memory.UndoOptions{Since: noon},
	reflect.TypeFor[iter.Seq2[memory.Record, error]](): iter.Seq2[memory.Record, error](
		func(yield func(memory.Record, error) bool) { yield(&memory.Item{Content: "tea"}, nil) }),
	reflect.TypeFor[memory.QuarantineDecision](): memory.ReleaseQuarantined,
}

func fits(kind reflect.Type) reflect.Value {
	if value, ok := fitting[kind]; ok {
		return reflect.ValueOf(value).Convert(kind)
	}
	switch kind.Kind() {
	case reflect.String:
		return reflect.Zero(kind) // The empty value of an enumeration fits too.
	case reflect.Pointer:
		return reflect.New(kind.Elem())
	case reflect.Interface:
		if kind.NumMethod() == 0 {
			return reflect.ValueOf("tea").Convert(kind)
		}
	}
	return reflect.Zero(kind)
}

// wrong is a value that cannot be sent, or one that must not make a call panic.
type wrong struct {
	name  string
	value reflect.Value
	// refused reports that the client must refuse it, and name it.
	refused bool
}

func wrongJSON() map[string]any {
	circle := map[string]any{}
	circle["itself"] = circle
	return map[string]any{
		"text": notUTF8, "key": map[string]any{notUTF8: 1}, "function": func() {}, "not a number": math.NaN(),
		"large": 1 << 60, "circle": circle, "list": []any{[]any{notUTF8}},
	}
}

// wrongs returns values of a type that are wrong, each in one place.
func wrongs(kind reflect.Type, name string, depth int) []wrong {
	if depth > 3 || notSent[name[strings.LastIndex(name, " ")+1:]] {
		return nil
	}
	of := func(refused bool, values ...any) (found []wrong) {
		for _, value := range values {
			converted := reflect.Zero(kind)
			if value != nil {
				converted = reflect.ValueOf(value).Convert(kind)
			}
			found = append(found, wrong{fmt.Sprintf("%s = %.40q", name, fmt.Sprintf("%v", value)), converted, refused})
		}
		return found
	}
	switch {
	case kind == reflect.TypeFor[context.Context]():
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		return append(of(true, nil), of(false, cancelled)...)
	case kind == reflect.TypeFor[time.Time]():
		return of(false, time.Time{}, time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64/2, 0))
	case kind == reflect.TypeFor[any]():
		var found []wrong
		for what, value := range wrongJSON() {
			if value, ok := value.(map[string]any); ok {
				found = append(found, wrong{name + " = " + what, reflect.ValueOf(value), true})
			}
		}
		return append(found, of(true, func() {}, make(chan int))...)
	case kind == reflect.TypeFor[map[string]any]():
		var found []wrong
		for what, value := range wrongJSON() {
			found = append(found, wrong{name + " = " + what, reflect.ValueOf(map[string]any{"k": value}), true})
		}
		return found
	}
	switch kind.Kind() {
	case reflect.String:
		return of(true, notUTF8)
	case reflect.Int, reflect.Int64:
		return of(false, int64(math.MinInt64), int64(-1), int64(math.MaxInt64))
	case reflect.Float64:
		return of(false, math.NaN(), math.Inf(1), -1.0, math.MaxFloat64)
	case reflect.Interface, reflect.Func:
		return of(false, nil)
	case reflect.Slice:
		return wrongElements(kind, name, depth)
	case reflect.Map:
		return wrongEntries(kind, name)
	case reflect.Pointer:
		return append(of(false, nil), wrongPointers(kind, name, depth)...)
	case reflect.Struct:
		return wrongFields(kind, name, depth)
	}
	return nil
}

func wrongElements(kind reflect.Type, name string, depth int) (found []wrong) {
	for _, element := range wrongs(kind.Elem(), name+"[1]", depth+1) {
		list := reflect.Append(reflect.Zero(kind), fits(kind.Elem()), element.value)
		found = append(found, wrong{element.name, list, element.refused})
	}
	return found
}

func wrongEntries(kind reflect.Type, name string) []wrong {
	value, key := reflect.MakeMap(kind), reflect.MakeMap(kind)
	value.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf(notUTF8))
	key.SetMapIndex(reflect.ValueOf(notUTF8), reflect.ValueOf("v"))
	return []wrong{{name + " value", value, true}, {name + " key", key, true}}
}

func wrongPointers(kind reflect.Type, name string, depth int) (found []wrong) {
	for _, inner := range wrongs(kind.Elem(), name, depth) {
		pointer := reflect.New(kind.Elem())
		pointer.Elem().Set(inner.value)
		found = append(found, wrong{inner.name, pointer, inner.refused})
	}
	return found
}

func wrongFields(kind reflect.Type, name string, depth int) (found []wrong) {
	for index := range kind.NumField() {
		field := kind.Field(index)
		if !field.IsExported() {
			continue
		}
		for _, inner := range wrongs(field.Type, fmt.Sprintf("%s %s.%s", name, kind.Name(), field.Name), depth+1) {
			whole := reflect.New(kind).Elem()
			if value, ok := fitting[reflect.PointerTo(kind)]; ok {
				whole.Set(reflect.ValueOf(value).Elem())
			}
			whole.Field(index).Set(inner.value)
			found = append(found, wrong{inner.name, whole, inner.refused})
		}
	}
	return found
}

// TestEveryArgumentThatCannotBeSentIsNamed makes calls with one wrong argument each at a server without
// services, which answers every call with ErrUnsupported.
func TestEveryArgumentThatCannotBeSentIsNamed(t *testing.T) {
	client := dialEmpty(t)
	tried := 0
	eachMethod(t, client, func(t *testing.T, method reflect.Value) {
		if err := called(method, fittingFor(method)...); !errors.Is(err, memory.ErrUnsupported) {
			t.Fatalf("with arguments that fit: %v", err)
		}
		for position := range method.Type().NumIn() {
			for _, each := range wrongs(method.Type().In(position), "", 0) {
				arguments := fittingFor(method)
				arguments[position] = each.value
				err := called(method, arguments...)
				var own *memory.Error
				isRefused := errors.Is(err, memory.ErrInvalidArgument)
				if !errors.As(err, &own) {
					t.Errorf("argument %d,%s: %v is no *memory.Error", position, each.name, err)
				} else if each.refused && !isRefused || isRefused && own.Field == "" {
					t.Errorf("argument %d,%s: field %q: %v", position, each.name, own.Field, err)
				}
				tried++
			}
		}
	})
	if tried < 900 {
		t.Fatalf("only %d values", tried)
	}
}

func TestEveryMethodOfAClosedClientReturnsErrClosed(t *testing.T) {
	for _, address := range []string{"127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2"} {
		client := dialTo(t, address)
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		for _, closed := range []*memory.Client{client, client.Namespace("ada")} {
			eachMethod(t, closed, func(t *testing.T, method reflect.Value) {
				wantError(t, called(method, fittingFor(method)...), memory.ErrClosed)
			})
		}
	}
}

func TestEveryRecordThatCannotBeSentIsNamed(t *testing.T) {
	client := dialEmpty(t)
	for field, record := range map[string]memory.Record{
		"records[0]":                     nil,
		"items[0]":                       &memory.Item{Labels: map[string]string{"k": notUTF8}},
		"items[0].content":               &memory.Item{Content: 5},
		"states[0].key":                  &memory.StateEntry{Key: notUTF8},
		"states[0].value.k":              &memory.StateEntry{Key: "k", Value: map[string]any{"k": math.NaN()}},
		"items[0].chat_message.parts[0]": &memory.Item{Content: llms.NewUserMessage(notUTF8)},
	} {
		_, err := client.ImportItems(soon(t), func(yield func(memory.Record, error) bool) { yield(record, nil) })
		if failure := wantError(t, err, memory.ErrInvalidArgument); !strings.HasPrefix(failure.Field, field) {
			t.Errorf("field %q, not %q: %v", failure.Field, field, err)
		}
	}
	_, err := client.ImportItems(soon(t), nil)
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "records")
	_, err = client.ImportItems(soon(t), memory.Records[*memory.Item](nil))
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "records")
}

func TestNilOptionsChangeNothing(t *testing.T) {
	client := dialEmpty(t)
	_, failed := memory.Dial("127.0.0.1:1", nil)
	if failed != nil {
		t.Fatal(failed)
	}
	_, importing := client.ImportItems(soon(t), memory.Records(slices.Values([]*memory.Item{})), nil)
	_, deleting := client.Delete(soon(t), "x", nil)
	_, finding := client.Retrieve(soon(t), nil)
	for _, err := range []error{importing, deleting, finding} {
		wantError(t, err, memory.ErrUnsupported)
	}
}

func TestAnOptionOfAnotherMethodIsNamed(t *testing.T) {
	client := dialEmpty(t)
	_, deleting := client.Delete(soon(t), "x", memory.WithExpectedSHA256("x"))
	_, getting := client.Get(soon(t), "x", memory.WithQueryEmbedding([]float32{1}))
	_, importing := client.ImportItems(soon(t), memory.Records(slices.Values([]*memory.Item{})), memory.WithBatchRecords(0))
	for field, err := range map[string]error{
		"expected_sha256": deleting, "query_embedding": getting, "batch_records": importing,
	} {
		equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, field)
	}
}

func TestAMemoryWithoutAServerNamesWrongArguments(t *testing.T) {
	kept := memory.NewInMemoryMemory()
	var missing context.Context
	for _, err := range []error{
		kept.Add(missing, &memory.Item{Content: "tea"}),
		kept.Add(context.Background(), nil),
		kept.Add(context.Background(), (*memory.Item)(nil)),
		kept.Add(context.Background(), &memory.Item{Content: (*llms.Message)(nil)}),
	} {
		if failure := wantError(t, err, memory.ErrInvalidArgument); failure.Field == "" {
			t.Error(err)
		}
	}
}

func eachMethod(t *testing.T, client *memory.Client, try func(*testing.T, reflect.Value)) {
	t.Helper()
	value := reflect.ValueOf(client)
	for index := range value.NumMethod() {
		name := value.Type().Method(index).Name
		if name != "Close" && name != "Namespace" {
			t.Run(name, func(t *testing.T) { try(t, value.Method(index)) })
		}
	}
}

// fittingFor returns arguments that fit a method. Its variable ones are a slice.
func fittingFor(method reflect.Value) []reflect.Value {
	arguments := make([]reflect.Value, method.Type().NumIn())
	for position := range arguments {
		arguments[position] = fits(method.Type().In(position))
	}
	return arguments
}

// called makes a call, or iterates over its answer, and returns its error.
func called(method reflect.Value, arguments ...reflect.Value) (err error) {
	defer func() {
		if raised := recover(); raised != nil {
			err = fmt.Errorf("panic: %v", raised)
		}
	}()
	call := method.Call
	if method.Type().IsVariadic() {
		call = method.CallSlice
	}
	results := call(arguments)
	last := results[len(results)-1]
	if last.Kind() == reflect.Func {
		for _, failure := range last.Seq2() {
			err, _ := failure.Interface().(error)
			return err
		}
		return nil
	}
	err, _ = last.Interface().(error)
	return err
}

func dialEmpty(t *testing.T) *memory.Client {
	t.Helper()
	listener := ok[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	empty := grpc.NewServer()
	go empty.Serve(listener)
	t.Cleanup(empty.Stop)
	return dialTo(t, listener.Addr().String(), memory.WithMaxAttempts(1))
}
