package memory

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// Client reaches one memory server, or several equal ones, and acts on one namespace of it, usually that of one user or
// one agent. It is safe for use by many goroutines at the same time.
//
// Every method returns an [*Error] when the server refuses or cannot be reached. A call whose
// context has no deadline gets the client's own, see [WithTimeout]; iterators have none.
type Client struct {
	*connection
	namespace string
}

// connection is what clients share that reach the same servers, whatever their namespaces.
type connection struct {
	channel interface {
		grpc.ClientConnInterface
		Close() error
	}
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
// Several addresses with commas between them, such as "host1:50051, host2:50051", are equal servers of the
// same records. Each namespace has one that its calls go to, and others when that is away; a call without
// a namespace goes to the first that is up. A name of several hosts is one of these servers, and gRPC
// chooses among its hosts.
//
// It returns an error that is [ErrInvalidArgument] for a setting that is out of range, for an address that is
// empty, there twice or without a port that there is, and for a credential that would travel over the
// network unencrypted.
func Dial(target string, options ...DialOption) (*Client, error) {
	settings := defaultDialSettings()
	for _, option := range options {
		option(settings)
	}
	addresses, err := addressesOf(target)
	if err != nil {
		return nil, err
	}
	if err := settings.validate(addresses); err != nil {
		return nil, err
	}
	shared := newConnection(settings)
	if err := shared.dial(addresses, settings); err != nil {
		return nil, invalidArgument("target", err.Error())
	}
	return &Client{connection: shared, namespace: settings.namespace}, nil
}

func newConnection(settings *dialSettings) *connection {
	return &connection{
		timeout:     settings.timeout,
		headers:     settings.headers(),
		tokenSource: settings.tokenSource,
	}
}

// dial makes the channel to a server, or those to several.
func (c *connection) dial(addresses []string, settings *dialSettings) error {
	if len(addresses) > 1 {
		several, err := dialServers(addresses, settings)
		if err != nil {
			return err
		}
		c.channel = several
	} else {
		channel, err := grpc.NewClient(addresses[0], settings.grpcOptions(addresses[0], false)...)
		if err != nil {
			return err
		}
		c.channel = channel
	}
	c.memories = memoryv1.NewMemoryServiceClient(c.channel)
	c.states = memoryv1.NewStateServiceClient(c.channel)
	c.userMemories = memoryv1.NewUserMemoryServiceClient(c.channel)
	c.interactions = memoryv1.NewInteractionServiceClient(c.channel)
	c.knowledge = memoryv1.NewKnowledgeServiceClient(c.channel)
	c.overseer = memoryv1.NewOverseerServiceClient(c.channel)
	c.admin = memoryv1.NewAdminServiceClient(c.channel)
	c.health = grpc_health_v1.NewHealthClient(c.channel)
	return nil
}

// Namespace returns a client that acts on another namespace over the same connection. It is cheap
// enough to be made for every call.
func (c *Client) Namespace(name string) *Client {
	return &Client{connection: c.connection, namespace: name}
}

// Close ends all calls and iterators of this client and of those that [Client.Namespace] made of
// it, and closes the connections. Later calls return [ErrClosed]. Closing twice does no harm.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.channel.Close()
}
