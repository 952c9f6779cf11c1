package agentgo_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var program = regexp.MustCompile("(?s)```go\n(package main\n.*?)```")

// The first example of the README runs in an empty module, with nothing but what the README names.
func TestTheREADMEsExampleRuns(t *testing.T) {
	if shared == nil {
		t.Skip(errNoServer)
	}
	readme, err := os.ReadFile("README.md")
	must(t, err)
	found := program.FindSubmatch(readme)
	if found == nil {
		t.Fatal("the README has no program")
	}
	source := string(found[1])
	for named, actual := range map[string]string{
		"127.0.0.1:50051":      shared.address,
		`WithNamespace("ada")`: fmt.Sprintf("WithNamespace(%q)", newNamespace()),
	} {
		equal(t, "how often the program says "+named, strings.Count(source, named), 1)
		source = strings.Replace(source, named, actual, 1)
	}

	newcomer := buildInAnEmptyModule(t, source)
	for _, want := range []string{"1 user I like tea.\n", "1 user I like tea.\n2 user I like tea.\n"} {
		output, err := exec.Command(newcomer).CombinedOutput()
		must(t, err)
		equal(t, "what the program printed", string(output), want)
	}
}

// The example of an agent needs a model: the tests of agents run the same call.
func TestTheREADMEsAgentCompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	found := regexp.MustCompile("(?s)```go\n(package trains\n.*?)```").FindSubmatch(readme)
	if found == nil {
		t.Fatal("the README has no agent")
	}
	buildInAnEmptyModule(t, string(found[1]))
}

// buildInAnEmptyModule builds a program like a newcomer with a checkout, and returns its path.
func buildInAnEmptyModule(t *testing.T, source string) string {
	t.Helper()
	here, err := filepath.Abs(".")
	must(t, err)
	const module = "github.com/memory-service/memory-service/clients/go"
	empty := t.TempDir()
	must(t, os.WriteFile(filepath.Join(empty, "main.go"), []byte(source), 0o600))
	// A newcomer gets versions and checksums by "go mod tidy"; the test copies them, without the network.
	for _, name := range []string{"go.mod", "go.sum"} {
		known, err := os.ReadFile(name)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(empty, name), known, 0o600))
	}
	run := func(arguments ...string) {
		command := exec.Command("go", arguments...)
		command.Dir = empty
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, output)
		}
	}
	run("mod", "edit", "-module", "example.com/newcomer")
	run("mod", "edit", "-replace", fmt.Sprintf("%s=%s", module, filepath.Dir(here)))
	run("mod", "edit", "-replace", fmt.Sprintf("%s/agentgo=%s", module, here))
	run("mod", "edit", "-require", module+"/agentgo@v0.1.0")
	run("mod", "edit", "-require", module+"@v0.1.0")
	run("build", "-o", "newcomer", ".")
	return filepath.Join(empty, "newcomer")
}
