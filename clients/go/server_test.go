package memory_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
)

// shared is the server that most tests use, each in a separate namespace. Nil: it is not running.
var shared *server

func TestMain(m *testing.M) {
	os.Exit(runWithServer(m))
}

func runWithServer(m *testing.M) int {
	flag.Parse()
	started, err := startServer("")
	switch {
	case err == nil:
		shared = started
		defer started.stop()
		// The examples read it.
		os.Setenv("MEMORY_SERVICE_ADDRESS", started.address)
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

var (
	errNoServer = errors.New("no memory-service command: set MEMORY_SERVICE_COMMAND")
	listening   = regexp.MustCompile(`listening on (\S+)`)
)

func serverCommand() (string, error) {
	if command := os.Getenv("MEMORY_SERVICE_COMMAND"); command != "" {
		return command, nil
	}
	command, err := filepath.Abs("../../.venv/bin/memory-service")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(command); err != nil {
		return "", errNoServer
	}
	return command, nil
}

// server is a real server in a separate process.
type server struct {
	address string
	command *exec.Cmd
	log     *lockedBuffer
}

// startServer starts a server and returns when it listens. dataDir is the folder of its records; empty:
// they are in memory.
func startServer(dataDir string, flags ...string) (*server, error) {
	path, err := serverCommand()
	if err != nil {
		return nil, err
	}
	store := []string{"--data-dir", dataDir}
	if dataDir == "" {
		store = []string{"--store", "memory"}
	}
	arguments := append([]string{"serve", "--address", "127.0.0.1:0"}, append(store, flags...)...)
	started := &server{command: exec.Command(path, arguments...), log: &lockedBuffer{}}
	for _, variable := range os.Environ() {
		// Settings of the caller's shell must not reach the server under test.
		if !strings.HasPrefix(variable, "MEMORY_SERVICE_") && !strings.HasPrefix(variable, "OPENAI_") {
			started.command.Env = append(started.command.Env, variable)
		}
	}
	started.command.Stderr = started.log
	output, err := started.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := started.command.Start(); err != nil {
		return nil, err
	}
	watchdog := time.AfterFunc(time.Minute, func() { started.command.Process.Kill() })
	defer watchdog.Stop()
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			started.address = match[1]
			return started, nil
		}
	}
	return nil, fmt.Errorf("the server ended: %v\n%s", started.command.Wait(), started.log)
}

func (s *server) stop() {
	s.command.Process.Signal(syscall.SIGTERM)
	s.command.Wait()
}

func (s *server) kill() {
	s.command.Process.Kill()
	s.command.Wait()
}

type lockedBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// ownServer starts a server for one test.
func ownServer(t *testing.T, dataDir string, flags ...string) *server {
	t.Helper()
	needServer(t)
	started, err := startServer(dataDir, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.stop)
	return started
}

func needServer(t *testing.T) {
	t.Helper()
	if shared == nil {
		t.Skip(errNoServer)
	}
}

// dial connects to the shared server, in the test's own namespace.
func dial(t *testing.T, options ...memory.DialOption) *memory.Client {
	t.Helper()
	needServer(t)
	return dialTo(t, shared.address, options...)
}

func dialTo(t *testing.T, address string, options ...memory.DialOption) *memory.Client {
	t.Helper()
	options = append([]memory.DialOption{memory.WithNamespace(namespaceOf(t))}, options...)
	client, err := memory.Dial(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

var unnamable = regexp.MustCompile(`[^A-Za-z0-9/_]`)

// namespaceOf names a namespace after a test; a test that runs again gets another.
func namespaceOf(t *testing.T) string {
	return fmt.Sprintf("%s-%d", unnamable.ReplaceAllString(t.Name(), "_"), time.Now().UnixNano())
}
