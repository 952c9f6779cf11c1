package memory

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// integerMax is the largest magnitude up to which a double, protobuf's type for numbers, holds every
// integer.
const integerMax = 1 << 53

// levelsMax is how deep JSON values may be nested. The server reads fewer levels, and says how many; this
// limit ends the conversion of a map or a list that contains itself.
const levelsMax = 200

// structFrom converts JSON values by name; where names them in errors. A nil map is an empty object.
func structFrom(data map[string]any, where string) (*structpb.Struct, error) {
	return structAt(data, where, 0)
}

func structAt(data map[string]any, where string, level int) (*structpb.Struct, error) {
	object := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(data))}
	for key, element := range data {
		value, err := valueAt(element, where+"."+key, level+1)
		if err != nil {
			return nil, err
		}
		object.Fields[key] = value
	}
	return object, nil
}

// optionalStructFrom converts like structFrom, but leaves a nil map unset.
func optionalStructFrom(data map[string]any, where string) (*structpb.Struct, error) {
	if data == nil {
		return nil, nil
	}
	return structFrom(data, where)
}

// valueFrom converts a JSON value: nil, a bool, a number, a string, a list or a map of them, or
// anything that encoding/json can write; where names it in errors.
//
// It returns ErrInvalidArgument for an integer beyond 2^53, which a double would alter, and for a value
// that JSON cannot represent or that is nested too deeply.
func valueFrom(value any, where string) (*structpb.Value, error) {
	return valueAt(value, where, 0)
}

func valueAt(value any, where string, level int) (*structpb.Value, error) {
	if level > levelsMax {
		field := strings.ToValidUTF8(where[:min(len(where), 100)], "")
		return nil, invalidArgument(field, field+": nested too deeply")
	}
	switch value := value.(type) {
	case nil:
		return structpb.NewNullValue(), nil
	case bool:
		return structpb.NewBoolValue(value), nil
	case string:
		return structpb.NewStringValue(value), nil
	case float64:
		return numberFrom(value, where)
	case int:
		return integerFrom(int64(value), where)
	case int64:
		return integerFrom(value, where)
	case json.Number:
		return jsonNumberFrom(value, where)
	case map[string]any:
		if value == nil {
			return structpb.NewNullValue(), nil
		}
		object, err := structAt(value, where, level)
		return structpb.NewStructValue(object), err
	case []any:
		if value == nil {
			return structpb.NewNullValue(), nil
		}
		return listFrom(value, where, level)
	}
	return encodedFrom(value, where, level)
}

func numberFrom(number float64, where string) (*structpb.Value, error) {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return nil, invalidArgument(where, fmt.Sprintf("%s: %v is not a JSON value", where, number))
	}
	return structpb.NewNumberValue(number), nil
}

func integerFrom(integer int64, where string) (*structpb.Value, error) {
	if integer > integerMax || integer < -integerMax {
		return nil, invalidArgument(where, fmt.Sprintf("%s: %d is beyond 2^53; send it as a string", where, integer))
	}
	return structpb.NewNumberValue(float64(integer)), nil
}

func jsonNumberFrom(number json.Number, where string) (*structpb.Value, error) {
	if !strings.ContainsAny(number.String(), ".eE") {
		integer, err := number.Int64()
		if err != nil {
			return nil, invalidArgument(where, fmt.Sprintf("%s: %s is beyond 2^53; send it as a string", where, number))
		}
		return integerFrom(integer, where)
	}
	float, err := strconv.ParseFloat(number.String(), 64)
	if err != nil {
		return nil, invalidArgument(where, fmt.Sprintf("%s: %s is not a number that a double can hold", where, number))
	}
	return numberFrom(float, where)
}

func listFrom(elements []any, where string, level int) (*structpb.Value, error) {
	list := &structpb.ListValue{Values: make([]*structpb.Value, len(elements))}
	for index, element := range elements {
		value, err := valueAt(element, fmt.Sprintf("%s[%d]", where, index), level+1)
		if err != nil {
			return nil, err
		}
		list.Values[index] = value
	}
	return structpb.NewListValue(list), nil
}

// encodedFrom converts a value of another type than JSON's, by encoding it as JSON.
func encodedFrom(value any, where string, level int) (*structpb.Value, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, invalidArgument(where, fmt.Sprintf("%s: %T is not a JSON value: %v", where, value, err))
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil {
		return nil, invalidArgument(where, fmt.Sprintf("%s: %T is not a JSON value: %v", where, value, err))
	}
	return valueAt(plain, where, level)
}

// structTo converts to a map, with the types of encoding/json: all numbers are float64. An unset
// object becomes nil.
func structTo(object *structpb.Struct) map[string]any {
	if object == nil {
		return nil
	}
	return object.AsMap()
}

// valueTo converts to a JSON value, with the types of encoding/json: all numbers are float64. null and
// an unset value become nil.
func valueTo(value *structpb.Value) any {
	return value.AsInterface()
}

// timeFrom converts a time, cut to the microsecond; the zero time stays unset.
func timeFrom(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at.Truncate(time.Microsecond))
}

// timeTo converts to a time in UTC. An unset one becomes the zero time.
func timeTo(at *timestamppb.Timestamp) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.AsTime()
}

// durationFrom converts a duration; zero stays unset.
func durationFrom(duration time.Duration) *durationpb.Duration {
	if duration == 0 {
		return nil
	}
	return durationpb.New(duration)
}

// durationTo converts to a duration. An unset one becomes zero.
func durationTo(duration *durationpb.Duration) time.Duration {
	return duration.AsDuration()
}

// enumFrom returns the number of an enumeration's value, whose name in protobuf is the prefix and the
// value in capitals. An empty value is the unspecified one; field names the value in errors.
func enumFrom[E ~int32, S ~string](numbers map[string]int32, prefix string, value S, field string) (E, error) {
	if value == "" {
		return 0, nil
	}
	number, ok := numbers[prefix+strings.ToUpper(string(value))]
	if !ok {
		return 0, invalidArgument(field, fmt.Sprintf("%s: there is no %q", field, string(value)))
	}
	return E(number), nil
}

// enumTo returns the value of an enumeration's number: "" for the unspecified one, "unknown" for one
// that only a newer server knows.
func enumTo[S ~string](number fmt.Stringer, prefix string) S {
	name, known := strings.CutPrefix(number.String(), prefix)
	switch {
	case !known:
		return "unknown"
	case name == "UNSPECIFIED":
		return ""
	}
	return S(strings.ToLower(name))
}

// newUUID returns a random UUID, for items and requests.
func newUUID() string {
	var id [16]byte
	rand.Read(id[:]) // It never fails.
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:])
}
