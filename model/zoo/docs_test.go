package zoo_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tally-network/tally/model/zoo"
)

var update = flag.Bool("update", false, "write the tables of docs/models.md")

const page = "../../docs/models.md"

// table is the settings of an architecture as docs/models.md has them.
func table(a *zoo.Architecture) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n%s.\n\n| setting | default | range | means |\n|---|---|---|---|\n", a.Name, strings.ToUpper(a.About[:1])+a.About[1:])
	for _, s := range a.Settings {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, s.Default, s.Range(), s.About)
	}
	return b.String() + "\n"
}

func TestDocsHaveEverySetting(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- architectures -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the tables, between %s and %s", page, begin, end)
	}
	want := before + begin + "\n"
	for _, a := range zoo.Architectures {
		want += table(a)
	}
	want += end + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s does not have the settings as they are: go test ./model/zoo -run Docs -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
