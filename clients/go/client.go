package memory

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// Client reaches one memory server and acts on one namespace of it, usually that of one user or
// one agent. It is safe for use by many goroutines at the same time.
//
// Every method returns an [*Error] when the server refuses or cannot be reached. A call whose
// context has no deadline gets the client's own, see [WithTimeout]; iterators have none.
type Client struct {
	*connection
	namespace string
}

// connection is what the clients of one server share, whatever their namespaces.
type connection struct {
	channel *grpc.ClientConn
	timeout time.Duration
	headers []string
	// tokenSource is asked for the token of each call. Nil: none is, or it is among the headers.
	tokenSource TokenSource
	closed      atomic.Bool
	// answered tells that the server has answered a call.
	answered atomic.Bool

	memories     memoryv1.MemoryServiceClient
	states       memoryv1.StateServiceClient
	userMemories memoryv1.UserMemoryServiceClient
	interactions memoryv1.InteractionServiceClient
	knowledge    memoryv1.KnowledgeServiceClient
	overseer     memoryv1.OverseerServiceClient
	admin        memoryv1.AdminServiceClient
	health       grpc_health_v1.HealthClient
}

// Dial makes a client of the server at target, such as "127.0.0.1:50051" or any other name that
// gRPC understands. It does not wait for the server: the connection is opened by the first call.
//
// It returns an error that is [ErrInvalidArgument] for a setting that is out of range, and for a
// credential that would travel over the network unencrypted.
func Dial(target string, options ...DialOption) (*Client, error) {
	settings := defaultDialSettings()
	for _, option := range options {
		option(settings)
	}
	if err := settings.validate(target); err != nil {
		return nil, err
	}
	channel, err := grpc.NewClient(target, settings.grpcOptions(target)...)
	if err != nil {
		return nil, invalidArgument("target", err.Error())
	}
	return &Client{connection: newConnection(channel, settings), namespace: settings.namespace}, nil
}

func newConnection(channel *grpc.ClientConn, settings *dialSettings) *connection {
	return &connection{
		channel:      channel,
		timeout:      settings.timeout,
		headers:      settings.headers(),
		tokenSource:  settings.tokenSource,
		memories:     memoryv1.NewMemoryServiceClient(channel),
		states:       memoryv1.NewStateServiceClient(channel),
		userMemories: memoryv1.NewUserMemoryServiceClient(channel),
		interactions: memoryv1.NewInteractionServiceClient(channel),
		knowledge:    memoryv1.NewKnowledgeServiceClient(channel),
		overseer:     memoryv1.NewOverseerServiceClient(channel),
		admin:        memoryv1.NewAdminServiceClient(channel),
		health:       grpc_health_v1.NewHealthClient(channel),
	}
}

// Namespace returns a client that acts on another namespace over the same connection. It is cheap
// enough to be made for every call.
func (c *Client) Namespace(name string) *Client {
	return &Client{connection: c.connection, namespace: name}
}

// Close ends all calls and iterators of this client and of those that [Client.Namespace] made of
// it, and closes the connection. Later calls return [ErrClosed]. Closing twice does no harm.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.channel.Close()
}
