package op

import (
	"os"
	"regexp"
	"testing"
)

// Every operator is in the specification, and nothing else.
func TestSpecificationNamesEveryOperator(t *testing.T) {
	b, err := os.ReadFile("../../docs/spec/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z][A-Za-z0-9, ]*) \|`).FindAllSubmatch(b, -1) {
		for _, name := range regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`).FindAllString(string(row[1]), -1) {
			named[name] = true
		}
	}
	for _, name := range Names() {
		if !named[name] {
			t.Errorf("%s is not in docs/spec/operators.md", name)
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("docs/spec/operators.md speaks of %s, which is not supported", name)
	}
}
