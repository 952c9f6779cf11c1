package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// shared is the file that the tests of all clients read.
type shared struct {
	Placements []struct {
		Addresses []string
		Namespace string
		Weights   []string
		Order     []string
	}
	Headers []struct {
		Namespace string
		Header    *string
	}
	Refused []string
}

func placement(t *testing.T) shared {
	t.Helper()
	text, err := os.ReadFile("../placement.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases shared
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestANamespaceHasTheSameOrderInEveryClient(t *testing.T) {
	for _, wanted := range placement(t).Placements {
		var order []string
		for _, index := range orderOf(wanted.Addresses, wanted.Namespace) {
			order = append(order, wanted.Addresses[index])
		}
		if !slices.Equal(order, wanted.Order) {
			t.Errorf("%q goes to %v, not %v", wanted.Namespace, order, wanted.Order)
		}
		for i, weight := range wanted.Weights {
			if got := fmt.Sprintf("%016x", weightOf(wanted.Addresses[i], wanted.Namespace)); got != weight {
				t.Errorf("%q weighs %s at %s, not %s", wanted.Namespace, got, wanted.Addresses[i], weight)
			}
		}
	}
}

func TestTheHeaderOfANamespace(t *testing.T) {
	for _, wanted := range placement(t).Headers {
		var header []string
		if wanted.Header != nil {
			header = []string{"memory-namespace", *wanted.Header}
		}
		if got := headerOf(wanted.Namespace); !slices.Equal(got, header) {
			t.Errorf("%q is sent as %q", wanted.Namespace, got)
		}
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	for _, target := range placement(t).Refused {
		_, err := Dial(target)
		var failure *Error
		if !errors.As(err, &failure) || failure.Field != "target" || !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%q: %v", target, err)
		}
	}
	for target, want := range map[string][]string{
		" a:1 ,b:2":                   {"a:1", "b:2"},
		"unix:/a,dns:///b:1,[::1]:2":  {"unix:/a", "dns:///b:1", "[::1]:2"},
		"localhost":                   {"localhost"},
		"passthrough:///127.0.0.1:50": {"passthrough:///127.0.0.1:50"},
	} {
		if got, err := addressesOf(target); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", target, got, err)
		}
	}
	if _, err := Dial("127.0.0.1:1,memory.example.org:2", WithAPIKey("k")); !errors.Is(err, ErrInvalidArgument) {
		t.Error(err)
	}
}

// failure returns the error of a call whose server is unavailable or reports a reason.
func failure(t *testing.T, code codes.Code, reason string) error {
	t.Helper()
	detailed := status.New(code, "away")
	if reason != "" {
		var err error
		info := &errdetails.ErrorInfo{Domain: errorDomain, Reason: reasonPrefix + reason}
		if detailed, err = detailed.WithDetails(info); err != nil {
			t.Fatal(err)
		}
	}
	return detailed.Err()
}

func TestEachServerIsTriedAtOnceAndThenAfterPauses(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for name, wanted := range map[string]struct {
		attemptsMax int
		waits       bool
		method      string
		err         error
		way         []int
	}{
		"every":    {5, false, "/s/Get", failure(t, codes.Unavailable, ""), []int{1, 2, 0, 1}},
		"cut":      {5, false, "/s/Get", failure(t, codes.Canceled, ""), []int{1, 2, 0, 1}},
		"few":      {2, false, "/s/Get", failure(t, codes.Unavailable, ""), []int{1, 2}},
		"one":      {1, true, "/s/Get", failure(t, codes.Unavailable, ""), nil},
		"once":     {5, true, "/s/Import", failure(t, codes.Unavailable, ""), nil},
		"waits":    {5, true, "/s/Get", failure(t, codes.Unavailable, ""), []int{1, 2, 0, 1, 2, 0, 1, 2}},
		"stopping": {5, true, "/s/Get", failure(t, codes.Unavailable, "SHUTTING_DOWN"), []int{1, 2, 0, 1}},
		"no model": {5, true, "/s/Get", failure(t, codes.Unavailable, "LLM_UNAVAILABLE"), []int{0, 0, 0, 0}},
		"other":    {5, true, "/s/Get", failure(t, codes.NotFound, "ITEM_NOT_FOUND"), nil},
	} {
		several := &servers{
			addresses: []string{"a:1", "b:1", "c:1"}, maxAttempts: wanted.attemptsMax, waitForReady: wanted.waits,
			passedOverUntil: make([]time.Time, 3),
		}
		at := several.begin(ctx, wanted.method, "")
		var way []int
		for len(way) < 8 {
			delay, more := at.delayAfter(ctx, wanted.err)
			if !more {
				break
			}
			if isFirstRound := len(way) < 2 && name != "no model"; isFirstRound != (delay == 0) {
				t.Errorf("%s: a pause of %v", name, delay)
			}
			way = append(way, at.server())
		}
		if !slices.Equal(way, wanted.way) {
			t.Errorf("%s: %v", name, way)
		}
		if last := several.order("")[2]; name == "once" && last != 0 {
			t.Errorf("the server that failed is not passed over, but %d", last)
		}
	}
}
