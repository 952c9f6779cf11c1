package memory_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheFirstExampleOfTheReadmeRuns runs the example in an empty project, like a newcomer.
func TestTheFirstExampleOfTheReadmeRuns(t *testing.T) {
	needServer(t)
	readme := string(ok[[]byte](t)(os.ReadFile("README.md")))
	program := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(readme)[1]
	const address = `"127.0.0.1:50051"`
	if strings.Count(program, address) != 1 {
		t.Fatalf("the example does not dial %s", address)
	}
	program = strings.Replace(program, address, `"`+shared.address+`"`, 1)
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
	expected := regexp.MustCompile("(?s)It prints\n\n    (.*?)\n\n").FindStringSubmatch(readme)[1]
	equal(t, strings.TrimSpace(string(output)), strings.TrimSpace(expected))
}
