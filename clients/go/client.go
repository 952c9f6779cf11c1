package memory

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// Client connects to one memory server, or to several over the same records, and acts on one namespace,
// usually that of one user or agent. It is safe for concurrent use.
//
// Every method returns an [*Error] if the server refuses the call or cannot be reached. A call whose
// context has no deadline gets the client's, see [WithTimeout]; iterators have none.
type Client struct {
	*connection
	namespace string
}

// connection is shared by clients of the same servers with different namespaces.
type connection struct {
	channel interface {
		grpc.ClientConnInterface
		Close() error
	}
	timeout time.Duration
	headers []string
	// tokenSource returns the token of each call. Nil: there is no token, or it is in the headers.
	tokenSource TokenSource
	closed      atomic.Bool
	// answered reports that the server has answered a call.
	answered atomic.Bool

	memories     memoryv1.MemoryServiceClient
	states       memoryv1.StateServiceClient
	userMemories memoryv1.UserMemoryServiceClient
	interactions memoryv1.InteractionServiceClient
	knowledge    memoryv1.KnowledgeServiceClient
	sessions     memoryv1.SessionServiceClient
	files        memoryv1.FileServiceClient
	overseer     memoryv1.OverseerServiceClient
	admin        memoryv1.AdminServiceClient
	health       grpc_health_v1.HealthClient
}

// Dial returns a client of the server at target, such as "127.0.0.1:50051" or any other name that gRPC
// resolves. It does not wait for the server: the first call opens the connection.
//
// Several addresses separated by commas, such as "host1:50051, host2:50051", are servers over the same
// records. Each namespace prefers one of them and uses another while that one is unavailable; a call
// without a namespace goes to the first that is up. A name that resolves to several hosts counts as one
// server; gRPC chooses the host.
//
// It returns [ErrInvalidArgument] for a setting out of range, for an address that is empty, repeated or
// without a valid port, and for a credential that would cross the network unencrypted.
func Dial(target string, options ...DialOption) (*Client, error) {
	settings := defaultDialSettings()
	apply(settings, options)
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

// dial makes the channel to a server, or one to each of several.
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
	c.sessions = memoryv1.NewSessionServiceClient(c.channel)
	c.files = memoryv1.NewFileServiceClient(c.channel)
	c.overseer = memoryv1.NewOverseerServiceClient(c.channel)
	c.admin = memoryv1.NewAdminServiceClient(c.channel)
	c.health = grpc_health_v1.NewHealthClient(c.channel)
	return nil
}

// Namespace returns a client for another namespace over the same connection. It is cheap enough to
// create for every call.
func (c *Client) Namespace(name string) *Client {
	return &Client{connection: c.connection, namespace: name}
}

// Close ends all calls and iterators of this client and of those that [Client.Namespace] derived from
// it, and closes the connections. Later calls return [ErrClosed]. Closing twice is harmless.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.channel.Close()
}
