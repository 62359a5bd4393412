package search

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A text of commas takes little memory before it is refused.
func TestCommasAreRefused(t *testing.T) {
	commas := bytes.Repeat([]byte(","), 1<<20)
	for name, text := range map[string][]byte{
		"header": commas, "row": append([]byte("x,class\n"), commas...), "second line of a record": append([]byte("x,class\n\"1\n\","), commas...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadTable(text, "")
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 2 || err == nil || !strings.Contains(err.Error(), "columns separated by commas") {
			t.Errorf("%s: %d MiB for %d, %v", name, got, len(text)>>20, err)
		}
	}
	long := fmt.Sprintf("x,class\n1,%q\n1,a\n", strings.Repeat(",", maxName))
	if _, err := ReadTable([]byte(strings.Replace(long, "1,a\n", strings.Repeat("1,a\n", 10), 1)), ""); err != nil {
		t.Errorf("commas within quotes separate nothing: %v", err)
	}
}

// A feature that is always the same is 0 once it is scaled, though its mean is rounded. So other values of the test stay small.
func TestRoundingMakesNoDifference(t *testing.T) {
	var text strings.Builder
	text.WriteString("x,y,class\n")
	for i := range 100 {
		fmt.Fprintf(&text, "0.1,%d,%c\n", i, 'a'+i%2)
	}
	table, err := ReadTable([]byte(text.String()), "")
	if err != nil {
		t.Fatal(err)
	}
	train, _, _ := table.split()
	if mean, deviation := table.scale(train); mean[0] != 0.1 || deviation[0] != 1 {
		t.Errorf("mean %v, deviation %v: another row with 0.2 becomes %v", mean[0], deviation[0], (0.2-mean[0])/deviation[0])
	}
}
