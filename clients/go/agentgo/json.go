package agentgo

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The server's limits for one part. Larger parts are packed, see pack.
const (
	textBytesMax = 64 << 10
	dataBytesMax = 256 << 10
	nameBytesMax = 1 << 10
	// The server reads values of about 30 levels; beyond, a request cannot be parsed.
	depthMax = 20
)

// jsonValue is a Go value as JSON represents it.
type jsonValue struct {
	// text is the value's JSON.
	text []byte
	// value has the types of encoding/json, except for integers that a float64 would alter.
	value any
	// fits reports whether the server can store it as data unaltered.
	fits bool
}

func toJSON(value any) (jsonValue, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return jsonValue{}, err
	}
	read, err := fromJSON(text)
	if err != nil {
		return jsonValue{}, err
	}
	return jsonValue{text: text, value: read, fits: len(text) <= dataBytesMax && fits(read, 0)}, nil
}

// fromJSON reads JSON as encoding/json does, but keeps every integer exact.
func fromJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return withNumbers(value), nil
}

// withNumbers replaces every json.Number in value by the result of number.
func withNumbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		return number(value)
	case []any:
		for index, element := range value {
			value[index] = withNumbers(element)
		}
	case map[string]any:
		for key, element := range value {
			value[key] = withNumbers(element)
		}
	}
	return value
}

// number returns a float64, unless that would alter an integer's digits: then an int64, a uint64 or, beyond
// both, the json.Number.
func number(digits json.Number) any {
	float, err := digits.Float64()
	isInteger := !strings.ContainsAny(digits.String(), ".eE")
	if err == nil && (!isInteger || strconv.FormatFloat(float, 'f', -1, 64) == digits.String()) {
		return float
	}
	if signed, err := digits.Int64(); err == nil {
		return signed
	}
	if unsigned, err := strconv.ParseUint(digits.String(), 10, 64); err == nil {
		return unsigned
	}
	return digits
}

// fits reports whether all numbers of a value read by fromJSON are float64, and it is not too deep.
func fits(value any, depth int) bool {
	switch value := value.(type) {
	case int64, uint64, json.Number:
		return false
	case []any:
		for _, element := range value {
			if !fits(element, depth+1) {
				return false
			}
		}
	case map[string]any:
		for _, element := range value {
			if !fits(element, depth+1) {
				return false
			}
		}
	}
	return depth <= depthMax
}

// isText reports whether the server accepts a text unchanged.
func isText(text string) bool {
	return len(text) <= textBytesMax && utf8.ValidString(text)
}

// isName reports whether the server accepts a name or an id unchanged.
func isName(name string, bytesMax int) bool {
	return len(name) <= bytesMax && utf8.ValidString(name) && strings.IndexFunc(name, unicode.IsControl) < 0
}
