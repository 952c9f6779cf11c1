package memory

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	receiveBytesMax = 16 << 20
	// A retry needs the request, which is buffered up to this size. The server takes no larger one.
	retryBufferBytes = 16 << 20
	// The most that gRPC allows.
	attemptsMax = 5
)

// DialOption changes how a client reaches its server.
type DialOption func(*dialSettings)

type dialSettings struct {
	namespace    string
	timeout      time.Duration
	maxAttempts  int
	tls          *tls.Config
	apiKey       *string
	tokenSource  TokenSource
	insecure     bool
	extraHeaders map[string]string
	keepalive    time.Duration
	waitForReady bool
}

func defaultDialSettings() *dialSettings {
	return &dialSettings{
		namespace:    "default",
		timeout:      30 * time.Second,
		maxAttempts:  attemptsMax,
		extraHeaders: map[string]string{},
		keepalive:    time.Minute,
	}
}

// WithNamespace sets the namespace that the client acts on. Without it, it is "default".
func WithNamespace(name string) DialOption {
	return func(s *dialSettings) { s.namespace = name }
}

// WithTimeout limits a call whose context has no deadline, retries included. Without it: 30 seconds. 0:
// no limit. [Client.ImportItems], [Client.Flush], [Client.Backup] and iterators over changes and exports
// have no limit except that of their context.
func WithTimeout(timeout time.Duration) DialOption {
	return func(s *dialSettings) { s.timeout = timeout }
}

// WithMaxAttempts sets how often a call is tried while the server is unavailable or overloaded, 1 to 5.
// Without it: 5. Writes carry a request id, so that a retried write is applied once. [Client.ImportItems],
// [Client.Backup], [Client.DeleteNamespace] and [Client.ReviewQuarantined] carry none and are tried once.
func WithMaxAttempts(attempts int) DialOption {
	return func(s *dialSettings) { s.maxAttempts = attempts }
}

// WithTLS encrypts the connection. Nil is the default: the certificates that the system trusts, and the
// name of the target. Put a client certificate, for servers that ask for one, into its Certificates.
func WithTLS(config *tls.Config) DialOption {
	return func(s *dialSettings) {
		if config == nil {
			config = &tls.Config{}
		}
		s.tls = config.Clone()
	}
}

// WithAPIKey sends an API key, or any other token that does not expire, with every call, as
// "authorization: Bearer ...". [Dial] refuses it without [WithTLS], unless the target is this machine or
// [WithInsecureToken] is given.
func WithAPIKey(key string) DialOption {
	return func(s *dialSettings) { s.apiKey = &key }
}

// TokenSource returns the token of a call. It is called for each call, with the call's ctx, by many
// goroutines at the same time.
type TokenSource func(ctx context.Context) (string, error)

// WithTokenSource gets the token of each call from a source, in place of [WithAPIKey], for tokens that
// expire. If the source fails, the call returns [ErrUnauthenticated], which wraps the source's error.
func WithTokenSource(source TokenSource) DialOption {
	return func(s *dialSettings) { s.tokenSource = source }
}

// WithInsecureToken sends credentials to another machine even without [WithTLS]: anything on the network
// path can read them.
func WithInsecureToken() DialOption {
	return func(s *dialSettings) { s.insecure = true }
}

// WithHeaders sends headers with every call. A header named authorization is a credential, with the
// restrictions of [WithAPIKey].
func WithHeaders(headers map[string]string) DialOption {
	return func(s *dialSettings) { maps.Copy(s.extraHeaders, headers) }
}

// WithKeepalive sets the silence after which an open call checks that the server is still there.
// Without it: one minute. gRPC raises shorter times to 10 seconds.
func WithKeepalive(silence time.Duration) DialOption {
	return func(s *dialSettings) { s.keepalive = silence }
}

// WithWaitForReady makes even the first calls wait for an unreachable server until their deadline,
// instead of failing with [ErrUnavailable] after the attempts of [WithMaxAttempts], which take about two
// seconds. Once the server has answered a call, calls with a deadline wait without this option: a wrong
// address is reported soon, and a restart goes unnoticed.
func WithWaitForReady() DialOption {
	return func(s *dialSettings) { s.waitForReady = true }
}

var (
	headerName  = regexp.MustCompile(`^[0-9A-Za-z_.-]+$`)
	headerValue = regexp.MustCompile(`^[\x20-\x7e]*$`)
	tokenText   = regexp.MustCompile(`^[\x21-\x7e]+$`)
)

func (s *dialSettings) validate(addresses []string) error {
	if s.timeout < 0 {
		return invalidArgument("timeout", fmt.Sprintf("the timeout must not be negative, but is %v", s.timeout))
	}
	if s.maxAttempts < 1 || s.maxAttempts > attemptsMax {
		return invalidArgument("max_attempts", fmt.Sprintf("must be 1 to %d attempts, not %d", attemptsMax, s.maxAttempts))
	}
	if s.keepalive <= 0 {
		return invalidArgument("keepalive", fmt.Sprintf("the silence must be positive, not %v", s.keepalive))
	}
	for name, value := range s.extraHeaders {
		if !headerName.MatchString(name) || !headerValue.MatchString(value) {
			return invalidArgument("headers", fmt.Sprintf("the header %q cannot be sent", name))
		}
	}
	return s.validateCredentials(addresses)
}

func (s *dialSettings) validateCredentials(addresses []string) error {
	given := 0
	if s.apiKey != nil {
		given++
		if !tokenText.MatchString(*s.apiKey) {
			return invalidArgument("api_key", "the API key must be printable ASCII text without spaces")
		}
	}
	if s.tokenSource != nil {
		given++
	}
	for name := range s.extraHeaders {
		if strings.EqualFold(name, "authorization") {
			given++
		}
	}
	if given > 1 {
		return invalidArgument("token", "only one of API key, token source and an authorization header can be given")
	}
	if given > 0 && s.tls == nil && !s.insecure && !allLoopback(addresses) {
		return invalidArgument("token", "credentials need TLS: without it, anything on the network path could read them")
	}
	return nil
}

func allLoopback(addresses []string) bool {
	for _, address := range addresses {
		if !isLoopback(address) {
			return false
		}
	}
	return true
}

// headers returns alternating names and values, as gRPC takes them.
func (s *dialSettings) headers() []string {
	var pairs []string
	for name, value := range s.extraHeaders {
		pairs = append(pairs, strings.ToLower(name), value)
	}
	if s.apiKey != nil {
		pairs = append(pairs, bearer(*s.apiKey)...)
	}
	return pairs
}

func bearer(token string) []string {
	return []string{"authorization", "Bearer " + token}
}

// grpcOptions returns the options of a channel to a target, which is the only one or one of several.
func (s *dialSettings) grpcOptions(target string, oneOfSeveral bool) []grpc.DialOption {
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(s.credentials()),
		grpc.WithDefaultServiceConfig(serviceConfig(s.maxAttempts, oneOfSeveral)),
		// Only this client knows which calls are safe to retry.
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(receiveBytesMax),
			grpc.MaxRetryRPCBufferSize(retryBufferBytes),
			grpc.WaitForReady(s.waitForReady),
		),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: s.keepalive, Timeout: 20 * time.Second}),
		// Reconnect soon to a restarted server; by default gRPC waits up to two minutes.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay:  100 * time.Millisecond,
				Multiplier: 1.6,
				Jitter:     0.2,
				MaxDelay:   2 * time.Second,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	if isLoopback(target) {
		// A proxy set in the environment is for the network, not for this machine.
		options = append(options, grpc.WithNoProxy())
	}
	return options
}

func (s *dialSettings) credentials() credentials.TransportCredentials {
	if s.tls == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(s.tls)
}

// isLoopback reports whether a target is this machine, so that no data leaves it.
func isLoopback(target string) bool {
	endpoint := target
	if parsed, err := url.Parse(target); err == nil {
		switch parsed.Scheme {
		case "unix", "unix-abstract":
			return true
		case "dns", "passthrough":
			endpoint = strings.TrimPrefix(parsed.Path+parsed.Opaque, "/")
		}
	}
	host := endpoint
	if colon := strings.LastIndex(endpoint, ":"); colon >= 0 && !strings.HasSuffix(endpoint, "]") {
		host = endpoint[:colon]
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	address, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && address.IsLoopback())
}
