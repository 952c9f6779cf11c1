package memory_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const readmeAddress = `"127.0.0.1:50051"`

// TestTheFirstExampleOfTheReadmeRuns runs the example in an empty project, like a newcomer.
func TestTheFirstExampleOfTheReadmeRuns(t *testing.T) {
	readme := string(ok[[]byte](t)(os.ReadFile("README.md")))
	program := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(readme)[1]
	expected := regexp.MustCompile("(?s)It prints\n\n    (.*?)\n\n").FindStringSubmatch(readme)[1]
	equal(t, printedBy(t, program), expected)
}

func TestTheReadmesExampleOfABatchRuns(t *testing.T) {
	readme := string(ok[[]byte](t)(os.ReadFile("README.md")))
	example := regexp.MustCompile("(?s)\n## Several items at once\n.*?```go\n(.*?)```").FindStringSubmatch(readme)[1]
	program := `package main

import (
	"context"
	"fmt"
	"log"

	memory "github.com/memory-service/memory-service/clients/go"
)

func main() {
	ctx := context.Background()
	client, err := memory.Dial(` + readmeAddress + `, memory.WithNamespace("` + namespaceOf(t) + `"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	example(ctx, client)
}

func example(ctx context.Context, client *memory.Client) {
` + example + `
}
`
	equal(t, printedBy(t, program), "deleted: 0 version of the plan: 1")
}

// printedBy runs a program in an empty project that uses this module, and returns what it prints.
func printedBy(t *testing.T, program string) string {
	t.Helper()
	needServer(t)
	if strings.Count(program, readmeAddress) != 1 {
		t.Fatalf("the example does not dial %s", readmeAddress)
	}
	program = strings.Replace(program, readmeAddress, `"`+shared.address+`"`, 1)
	project := t.TempDir()
	here := ok[string](t)(filepath.Abs("."))
	module := "module example.org/newcomer\n\ngo 1.25.0\n\n" +
		"require github.com/memory-service/memory-service/clients/go v0.0.0\n\n" +
		"replace github.com/memory-service/memory-service/clients/go => " + here + "\n"
	for name, text := range map[string]string{
		"main.go": program,
		"go.mod":  module,
		"go.sum":  string(ok[[]byte](t)(os.ReadFile("go.sum"))),
	} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command("go", "run", "-mod=mod", ".")
	run.Dir = project
	output, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return strings.TrimSpace(string(output))
}
