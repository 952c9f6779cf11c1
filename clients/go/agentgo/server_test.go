package agentgo_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	memory "github.com/memory-service/memory-service/clients/go"
)

// server is a real server in a separate process, on a free port.
type server struct {
	command *exec.Cmd
	address string
}

var listening = regexp.MustCompile(`listening on (\S+)`)

var errNoServer = errors.New("no memory-service command: name one in MEMORY_SERVICE_COMMAND")

// startServer starts a server on dataDir, which is ended with the test.
func startServer(t *testing.T, dataDir string) *server {
	t.Helper()
	if shared == nil {
		t.Skip(errNoServer)
	}
	started, err := launch(dataDir)
	must(t, err)
	t.Cleanup(started.kill)
	return started
}

func launch(dataDir string) (*server, error) {
	program := os.Getenv("MEMORY_SERVICE_COMMAND")
	if program == "" {
		program = filepath.Join("..", "..", "..", ".venv", "bin", "memory-service")
		if _, err := os.Stat(program); err != nil {
			return nil, errNoServer
		}
	}
	command := exec.Command(program, "serve", "--address", "127.0.0.1:0", "--data-dir", dataDir)
	for _, setting := range os.Environ() { // Settings of the caller's shell must not reach the server.
		if !strings.HasPrefix(setting, "MEMORY_SERVICE_") && !strings.HasPrefix(setting, "OPENAI_") {
			command.Env = append(command.Env, setting)
		}
	}
	var log strings.Builder
	command.Stderr = &log
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	started := &server{command: command}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			started.address = found[1]
			// Drain the pipe, because a server would block on a full one.
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return started, nil
		}
	}
	started.kill()
	return nil, errors.New("the server ended before it listened:\n" + log.String())
}

// terminate asks the server to stop, as a supervisor would, and waits for it.
func (s *server) terminate() { s.end(syscall.SIGTERM) }

// kill ends the server without a warning.
func (s *server) kill() { s.end(syscall.SIGKILL) }

func (s *server) end(signal os.Signal) {
	if s.command.ProcessState == nil {
		_ = s.command.Process.Signal(signal)
		_ = s.command.Wait()
	}
}

// shared is the server of all tests that do not stop it. Nil: it is not running.
var shared *server

func TestMain(m *testing.M) {
	os.Exit(runWithServer(m))
}

func runWithServer(m *testing.M) int {
	flag.Parse()
	dataDir, err := os.MkdirTemp("", "agentgo")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dataDir)
	shared, err = launch(dataDir)
	switch {
	case err == nil:
		defer shared.terminate()
		// Where the examples find it.
		os.Setenv("MEMORY_SERVICE_ADDRESS", shared.address)
	case os.Getenv("CI") == "true" || !errors.Is(err, errNoServer):
		fmt.Fprintln(os.Stderr, err)
		return 1
	default:
		fmt.Fprintln(os.Stderr, err, "- tests that need one are skipped")
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// newClient returns a client of the shared server, with a namespace that no other test has.
func newClient(t *testing.T) *memory.Client {
	t.Helper()
	if shared == nil {
		t.Skip(errNoServer)
	}
	return dial(t, shared.address, newNamespace())
}

var namespaces atomic.Int64

// newNamespace returns a name that no other test has had.
func newNamespace() string { return fmt.Sprintf("test-%d", namespaces.Add(1)) }

func dial(t *testing.T, address, namespace string) *memory.Client {
	t.Helper()
	client, err := memory.Dial(address, memory.WithNamespace(namespace))
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s\n got: %s\nwant: %s", what, shown(got), shown(want))
	}
}
