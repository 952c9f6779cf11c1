package memory_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
)

// readmePrints is what each example of the README prints, in order.
var readmePrints = []string{
	`^user: I like tea\n$`,
	`^Ada likes tea\n$`,
	`^[0-9a-f]{32} \d{4}-.*\n$`,
	`^deleted: 0 version of the plan: 1\n$`,
	`^1\n[\d.]+ Ada likes tea \[.*\]\nitem-1\n$`,
	`^plan 2 2\n$`,
	`^# Trip\n- a ticket\ntrip 1\n\S+ Ada likes tea\n$`,
	`^2\n(\d+ item_added \S+ ?\n)+`,
	`^$`,
	`^there is no such item\nunknown\n$`,
}

// TestEachExampleOfTheReadmeRunsByItself builds each in an empty project, like a newcomer, and runs it.
func TestEachExampleOfTheReadmeRunsByItself(t *testing.T) {
	needServer(t)
	readme := string(ok[[]byte](t)(os.ReadFile("README.md")))
	examples := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(examples) != len(readmePrints) {
		t.Fatalf("%d examples, %d of which are expected to print something", len(examples), len(readmePrints))
	}
	project := newProject(t)
	for index, example := range examples {
		t.Run(fmt.Sprint(index), func(t *testing.T) {
			namespace := namespaceOf(t)
			if strings.Contains(example[1], "RetrieveResults") {
				item := &memory.Item{ID: "item-1", Content: "Ada likes tea", SessionID: "trip", Labels: map[string]string{"topic": "travel"}}
				ok[*memory.Item](t)(dial(t).Namespace(namespace).AddItem(soon(t), item))
			}
			program := strings.ReplaceAll(example[1], `"127.0.0.1:50051"`, `"`+shared.address+`"`)
			program = strings.NewReplacer(`"ada"`, `"`+namespace+`"`, `"ada-copy"`, `"`+namespace+`-copy"`).Replace(program)
			if printed := printedBy(t, project, program); !regexp.MustCompile(readmePrints[index]).MatchString(printed) {
				t.Fatalf("it prints %q", printed)
			}
		})
	}
	expected := regexp.MustCompile("(?s)It prints\n\n    (.*?)\n\n").FindStringSubmatch(readme)[1]
	if !regexp.MustCompile(readmePrints[0]).MatchString(expected + "\n") {
		t.Fatalf("the README says that the first example prints %q", expected)
	}
}

// newProject makes a folder with a module that uses this one.
func newProject(t *testing.T) string {
	t.Helper()
	project := t.TempDir()
	here := ok[string](t)(filepath.Abs("."))
	module := "module example.org/newcomer\n\ngo 1.25.0\n\n" +
		"require github.com/memory-service/memory-service/clients/go v0.0.0\n\n" +
		"replace github.com/memory-service/memory-service/clients/go => " + here + "\n"
	write(t, filepath.Join(project, "go.mod"), module)
	write(t, filepath.Join(project, "go.sum"), string(ok[[]byte](t)(os.ReadFile("go.sum"))))
	return project
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// printedBy builds and runs a program, and returns what it prints. A watch never ends by itself, and so is
// stopped after it has printed the two changes that it follows.
func printedBy(t *testing.T, project, program string) string {
	t.Helper()
	write(t, filepath.Join(project, "main.go"), program)
	build := exec.Command("go", "build", "-mod=mod", "-o", "program", ".")
	build.Dir = project
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	run := exec.Command(filepath.Join(project, "program"))
	run.Env = append(os.Environ(), "MEMORY_SERVICE_API_KEY=mem_key")
	output := &watchedBuffer{enough: func(text []byte) bool {
		return strings.Contains(program, "client.Watch(") && bytes.Count(text, []byte("item_added")) == 2
	}, end: func() { run.Process.Kill() }}
	run.Stdout, run.Stderr = output, output
	watchdog := time.AfterFunc(time.Minute, func() {
		if run.Process != nil {
			run.Process.Kill()
		}
	})
	defer watchdog.Stop()
	var ended *exec.ExitError
	if err := run.Run(); err != nil && !(output.isEnough && errors.As(err, &ended)) {
		t.Fatalf("%v\n%s", err, output.text.String())
	}
	return output.text.String()
}

// watchedBuffer calls end when its text is enough.
type watchedBuffer struct {
	text     bytes.Buffer
	enough   func([]byte) bool
	end      func()
	isEnough bool
}

func (b *watchedBuffer) Write(text []byte) (int, error) {
	b.text.Write(text)
	if !b.isEnough && b.enough(b.text.Bytes()) {
		b.isEnough = true
		b.end()
	}
	return len(text), nil
}
