package memory_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	memory "github.com/memory-service/memory-service/clients/go"
)

// certificate makes a self-signed certificate for 127.0.0.1, and a pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key := ok[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	encoded := ok[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	pool := x509.NewCertPool()
	pool.AddCert(ok[*x509.Certificate](t)(x509.ParseCertificate(encoded)))
	return tls.Certificate{Certificate: [][]byte{encoded}, PrivateKey: key}, pool
}

// serve runs a gRPC server with health checks only, and returns its address.
func serve(t *testing.T, options ...grpc.ServerOption) string {
	t.Helper()
	listener := ok[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	serving := grpc.NewServer(options...)
	grpc_health_v1.RegisterHealthServer(serving, health.NewServer())
	go serving.Serve(listener)
	t.Cleanup(serving.Stop)
	return listener.Addr().String()
}

func TestTLSEncryptsAndSendsTokenAndHeaders(t *testing.T) {
	presented, trusted := certificate(t)
	sent := make(chan metadata.MD, 1)
	address := serve(t,
		grpc.Creds(credentials.NewServerTLSFromCert(&presented)),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			received, _ := metadata.FromIncomingContext(ctx)
			sent <- received
			return handle(ctx, request)
		}),
	)
	client := dialTo(t, address,
		memory.WithTLS(&tls.Config{RootCAs: trusted}),
		memory.WithAPIKey("secret"),
		memory.WithHeaders(map[string]string{"X-Team": "red"}),
	)
	equal(t, ok[memory.HealthStatus](t)(client.Health(soon(t), "")), memory.HealthServing)
	headers := <-sent
	equal(t, headers.Get("authorization"), []string{"Bearer secret"})
	equal(t, headers.Get("x-team"), []string{"red"})

	strangers := dialTo(t, address, memory.WithTLS(nil), memory.WithMaxAttempts(1))
	_, err := strangers.Health(soon(t), "")
	wantError(t, err, memory.ErrUnavailable) // The system does not trust this certificate.

	open := dialTo(t, address, memory.WithMaxAttempts(1))
	_, err = open.Health(soon(t), "")
	wantError(t, err, memory.ErrUnavailable)
}
