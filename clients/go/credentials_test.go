package memory_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/llms"
)

// demanding runs a server that accepts tokens with the prefix "good" and denies permission to "weak" ones.
// Its responses are empty. It passes the authorization header of every call to the function.
func demanding(t *testing.T) (address string, asked func() []string) {
	t.Helper()
	var mutex sync.Mutex
	var headers []string
	handle := func(_ any, stream grpc.ServerStream) error {
		received, _ := metadata.FromIncomingContext(stream.Context())
		sent := strings.Join(received.Get("authorization"), ",")
		mutex.Lock()
		headers = append(headers, sent)
		mutex.Unlock()
		switch {
		case strings.HasPrefix(sent, "Bearer weak"):
			return refused(codes.PermissionDenied, "PERMISSION_DENIED")
		case !strings.HasPrefix(sent, "Bearer good"):
			return refused(codes.Unauthenticated, "UNAUTHENTICATED")
		}
		for {
			if err := stream.RecvMsg(&emptypb.Empty{}); errors.Is(err, io.EOF) {
				return stream.SendMsg(&emptypb.Empty{})
			} else if err != nil {
				return err
			}
		}
	}
	listener := ok[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	serving := grpc.NewServer(grpc.UnknownServiceHandler(handle))
	go serving.Serve(listener)
	t.Cleanup(serving.Stop)
	return listener.Addr().String(), func() []string {
		mutex.Lock()
		defer mutex.Unlock()
		return append([]string(nil), headers...)
	}
}

func refused(code codes.Code, reason string) error {
	info := &errdetails.ErrorInfo{Reason: "ERROR_REASON_" + reason, Domain: "memory_service.v1"}
	refusal, err := status.New(code, "refused").WithDetails(info)
	if err != nil {
		return err
	}
	return refusal.Err()
}

// everyKind makes a unary call, a stream and an upload, and returns their errors.
func everyKind(t *testing.T, client *memory.Client) []error {
	t.Helper()
	_, unary := client.ResetNamespace(soon(t))
	var streamed error
	for _, err := range client.Export(soon(t)) {
		streamed = err
	}
	one := slices.Values([]*memory.Item{{Content: "one"}})
	_, uploaded := client.ImportItems(soon(t), memory.Records(one))
	return []error{unary, streamed, uploaded}
}

func TestAnAPIKeyGoesWithCallsOfEveryKind(t *testing.T) {
	address, asked := demanding(t)
	for _, err := range everyKind(t, dialTo(t, address, memory.WithAPIKey("good"))) {
		if err != nil {
			t.Error(err)
		}
	}
	equal(t, asked(), []string{"Bearer good", "Bearer good", "Bearer good"})
}

func TestATokenSourceIsAskedForEachCall(t *testing.T) {
	address, asked := demanding(t)
	count := 0
	source := func(context.Context) (string, error) {
		count++
		return fmt.Sprintf("good-%d", count), nil
	}
	for _, err := range everyKind(t, dialTo(t, address, memory.WithTokenSource(source))) {
		if err != nil {
			t.Error(err)
		}
	}
	equal(t, asked(), []string{"Bearer good-1", "Bearer good-2", "Bearer good-3"})
}

func TestTheErrorOfATokenSourceIsThatOfTheCall(t *testing.T) {
	address, asked := demanding(t)
	none := errors.New("no token today")
	for _, source := range []memory.TokenSource{
		func(context.Context) (string, error) { return "", none },
		func(context.Context) (string, error) { return "s3cret\n", nil },
	} {
		for _, err := range everyKind(t, dialTo(t, address, memory.WithTokenSource(source))) {
			wantError(t, err, memory.ErrUnauthenticated)
			if _, failed := source(soon(t)); failed != nil && !errors.Is(err, none) {
				t.Errorf("%v is not the error of the source", err)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v shows the token", err)
			}
		}
	}
	equal(t, len(asked()), 0)
}

func TestARefusalIsNeverTriedAgain(t *testing.T) {
	for token, want := range map[string]error{"bad": memory.ErrUnauthenticated, "weak": memory.ErrPermissionDenied} {
		address, asked := demanding(t)
		for _, err := range everyKind(t, dialTo(t, address, memory.WithAPIKey(token))) {
			failure := wantError(t, err, want)
			equal(t, string(failure.Reason), failure.Code)
		}
		equal(t, len(asked()), 3)
	}
}

func TestCredentialsThatCannotBeSent(t *testing.T) {
	source := memory.WithTokenSource(func(context.Context) (string, error) { return "secret", nil })
	for name, options := range map[string][]memory.DialOption{
		"empty":     {memory.WithAPIKey("")},
		"two lines": {memory.WithAPIKey("secret\n")},
		"two":       {memory.WithAPIKey("secret"), source},
		"header":    {memory.WithAPIKey("secret"), memory.WithHeaders(map[string]string{"Authorization": "secret"})},
	} {
		_, err := memory.Dial("127.0.0.1:1", options...)
		wantError(t, err, memory.ErrInvalidArgument)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v shows the secret", name, err)
		}
	}
	header := memory.WithHeaders(map[string]string{"Authorization": "Bearer secret"})
	for _, credential := range []memory.DialOption{source, header, memory.WithAPIKey("secret")} {
		_, err := memory.Dial("memory.example.org:50051", credential)
		wantError(t, err, memory.ErrInvalidArgument)
		willing := ok[*memory.Client](t)(memory.Dial("memory.example.org:50051", credential, memory.WithInsecureToken()))
		willing.Close()
	}
}

// certificates writes the files of tests/certificates.py, with the Python that the server runs in.
func certificates(t *testing.T) string {
	t.Helper()
	needServer(t)
	command := ok[string](t)(serverCommand())
	folder := t.TempDir()
	made := exec.Command(filepath.Join(filepath.Dir(command), "python"), "../../tests/certificates.py", folder)
	if output, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return folder
}

// trusting returns TLS settings of a client: the authority that it trusts, and its certificate, if any.
func trusting(t *testing.T, folder, authority, presented string) *tls.Config {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(ok[[]byte](t)(os.ReadFile(filepath.Join(folder, authority+".pem"))))
	if presented != "" {
		path := filepath.Join(folder, presented)
		config.Certificates = []tls.Certificate{ok[tls.Certificate](t)(tls.LoadX509KeyPair(path+".pem", path+".key"))}
	}
	return config
}

func TestMutualTLSWithARealServer(t *testing.T) {
	folder := certificates(t)
	file := func(name string) string { return filepath.Join(folder, name) }
	started := ownServer(t, "", "--embedder", "none",
		"--tls-certificate", file("server.pem"), "--tls-key", file("server.key"), "--tls-client-ca", file("ca.pem"))

	client := dialTo(t, started.address, memory.WithTLS(trusting(t, folder, "ca", "client")))
	if err := client.Add(soon(t), memory.NewChatMessageMemoryItem(llms.NewUserMessage("hello"))); err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]memory.DialOption{
		"no certificate":       {memory.WithTLS(trusting(t, folder, "ca", ""))},
		"another authority's":  {memory.WithTLS(trusting(t, folder, "ca", "stranger"))},
		"an expired one":       {memory.WithTLS(trusting(t, folder, "ca", "expired-client"))},
		"the server unknown":   {memory.WithTLS(trusting(t, folder, "stranger-ca", "client"))},
		"the system's trust":   {memory.WithTLS(nil)},
		"no encryption at all": {},
	} {
		stranger := dialTo(t, started.address, append(options, memory.WithMaxAttempts(1))...)
		if _, err := stranger.Health(soon(t), ""); !errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnExpiredServerIsNotTrusted(t *testing.T) {
	folder := certificates(t)
	expired := filepath.Join(folder, "expired")
	started := ownServer(t, "", "--embedder", "none", "--tls-certificate", expired+".pem", "--tls-key", expired+".key")
	client := dialTo(t, started.address, memory.WithTLS(trusting(t, folder, "ca", "")), memory.WithMaxAttempts(1))
	_, err := client.Health(soon(t), "")
	wantError(t, err, memory.ErrUnavailable)
}
