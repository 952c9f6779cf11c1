package memory

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

func TestEveryMethodIsRetriedButThree(t *testing.T) {
	var config struct {
		MethodConfig []struct {
			Name        []methodName
			RetryPolicy map[string]any
		}
	}
	if err := json.Unmarshal([]byte(serviceConfig(3, false)), &config); err != nil {
		t.Fatal(err)
	}
	retried := config.MethodConfig[0].Name
	count := 0
	for _, service := range []protoreflect.ServiceDescriptor{
		memoryv1.File_memory_service_v1_memory_proto.Services().Get(0),
		memoryv1.File_memory_service_v1_state_proto.Services().Get(0),
		memoryv1.File_memory_service_v1_user_memory_proto.Services().Get(0),
		memoryv1.File_memory_service_v1_interaction_proto.Services().Get(0),
		memoryv1.File_memory_service_v1_knowledge_proto.Services().Get(0),
		memoryv1.File_memory_service_v1_session_proto.Services().Get(0),
		memoryv1.File_memory_service_v1_overseer_proto.Services().Get(0),
		memoryv1.File_memory_service_v1_admin_proto.Services().Get(0),
	} {
		count += service.Methods().Len()
	}
	if len(retried) != count-4 || slices.ContainsFunc(retried, func(name methodName) bool {
		return name.Method == "Import" || name.Method == "Backup" || name.Method == "DeleteNamespace" ||
			name.Method == "ReviewQuarantined"
	}) {
		t.Fatalf("%d of %d methods: %v", len(retried), count, retried)
	}
	if config.MethodConfig[0].RetryPolicy["maxAttempts"] != 3.0 || serviceConfig(1, false) != "{}" {
		t.Fatal(config.MethodConfig[0].RetryPolicy)
	}
}

func TestEveryReasonHasAName(t *testing.T) {
	source, err := os.ReadFile("reasons.go")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, match := range regexp.MustCompile(`Reason = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		named = append(named, reasonPrefix+match[1])
	}
	numbers := maps.Clone(memoryv1.ErrorReason_value)
	delete(numbers, reasonPrefix+"UNSPECIFIED") // It is never sent.
	known := slices.Sorted(maps.Keys(numbers))
	if slices.Sort(named); !slices.Equal(named, known) {
		t.Fatalf("named %v\nknown %v", named, known)
	}
}

func TestDetailsOfAnErrorAreTakenOver(t *testing.T) {
	detailed, err := status.New(codes.ResourceExhausted, "too much").WithDetails(
		&errdetails.ErrorInfo{Domain: "proxy.example.org", Reason: "BUSY"},
		&errdetails.ErrorInfo{Domain: errorDomain, Reason: "ERROR_REASON_OVERLOADED", Metadata: map[string]string{"limit": "7"}},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "a"}, {Field: "b"}}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)},
		&errdetails.Help{},
	)
	if err != nil {
		t.Fatal(err)
	}
	var got *Error
	if !errors.As(errorFrom(detailed.Err()), &got) {
		t.Fatal("it is no *Error")
	}
	want := &Error{
		Code: "RESOURCE_EXHAUSTED", Reason: ReasonOverloaded, Message: "too much", Field: "a",
		Metadata: map[string]string{"limit": "7"}, RetryAfter: 1500 * time.Millisecond,
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%#v", got)
	}
	if again := errorFrom(got); again != error(got) || errorFrom(nil) != nil {
		t.Fatal(again)
	}
}

func TestValuesOfANewerServerAreUnknown(t *testing.T) {
	for number, want := range map[memoryv1.ItemKind]ItemKind{0: KindPlain, 2: KindResponse, 99: "unknown"} {
		if got := kindTo(number); got != want {
			t.Errorf("%d is %q", number, got)
		}
	}
	if role := enumTo[ItemKind](memoryv1.Role_ROLE_UNSPECIFIED, "ROLE_"); role != "" {
		t.Errorf("the unspecified role is %q", role)
	}
	part := partTo(&memoryv1.Part{})
	if part != nil {
		t.Errorf("an unknown part is %v", part)
	}
}

func TestNumbersThatADoubleCannotHoldAreRefused(t *testing.T) {
	for _, value := range []any{
		1<<53 + 1, -1<<53 - 1, uint64(1 << 63), json.Number("9007199254740993"), json.Number("1e999"), json.Number("x"),
		struct{ N int64 }{1<<53 + 1}, map[string]int{"n": 1<<53 + 1}, []uint64{1 << 60}, func() {}, make(chan int),
	} {
		if got, err := valueFrom(value, "v"); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%v became %v, %v", value, got, err)
		}
	}
	for _, value := range []any{1 << 53, -1 << 53, int8(-3), json.Number("1e300"), float32(0.5)} {
		if _, err := valueFrom(value, "v"); err != nil {
			t.Error(err)
		}
	}
}

func TestRequestIDsAreUUIDs(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if id := newUUID(); !form.MatchString(id) || id == newUUID() {
		t.Fatal(id)
	}
}

func TestAResumedStreamRepeatsNothing(t *testing.T) {
	at := resumption{seen: map[string]bool{}}
	if _, again := at.delayAfterBreak(); again {
		t.Fatal("a stream that never began is taken up again")
	}
	var had []string
	receive := func(revision int64, key string) {
		if at.accept(revision, key) {
			had = append(had, key)
		}
	}
	receive(1, "a")
	receive(3, "b") // The first of three events of revision 4, which is not complete yet.
	receive(3, "c")
	delay, again := at.delayAfterBreak()
	if !again || delay < 80*time.Millisecond || delay > 120*time.Millisecond || *at.position != 3 {
		t.Fatal(delay, again, *at.position)
	}
	if longer, _ := at.delayAfterBreak(); longer < 160*time.Millisecond {
		t.Fatal(longer)
	}
	receive(3, "c")
	receive(4, "d")
	receive(5, "c")
	if got := strings.Join(had, ""); got != "abcdc" {
		t.Fatal(got)
	}
}
