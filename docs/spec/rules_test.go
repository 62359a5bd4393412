package spec

import (
	"regexp"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	all, seen, ranges := Rules(), map[string]bool{}, 0
	if lines := len(regexp.MustCompile("(?m)^\\| `").FindAllString(rules, -1)); lines == 0 || len(all) != lines {
		t.Fatalf("%d rules of %d lines", len(all), lines)
	}
	for _, r := range all {
		name := r.Module + "." + r.Name
		if seen[name] {
			t.Errorf("%s stands twice", name)
		}
		seen[name] = true
		least, most, ok := r.Range()
		if ok {
			ranges++
		}
		if ok && least > most {
			t.Errorf("%s: from %d to %d", name, least, most)
		}
		for _, text := range []string{r.Default, r.Bounds, r.Unit, r.Why} {
			if text == "" || strings.TrimSpace(text) != text || strings.Contains(text, "`") {
				t.Errorf("%s: %q", name, text)
			}
		}
	}
	if ranges < len(all)/2 {
		t.Errorf("only %d of %d rules have bounds of two numbers", ranges, len(all))
	}
}

func TestRange(t *testing.T) {
	for text, want := range map[string][2]uint64{"0 to 5": {0, 5}, "1 to 18446744073709551615": {1, 1<<64 - 1}} {
		if least, most, ok := (&Rule{Bounds: text}).Range(); !ok || least != want[0] || most != want[1] {
			t.Errorf("%s: %d, %d, %v", text, least, most, ok)
		}
	}
	for _, text := range []string{"", "1 to period_ms", "1 to 18446744073709551616", "as above"} {
		if _, _, ok := (&Rule{Bounds: text}).Range(); ok {
			t.Errorf("%q was taken for two numbers", text)
		}
	}
	if got := digits("1,000,000 to 4,611,686,018,427,387,904"); got != "1000000 to 4611686018427387904" {
		t.Error(got)
	}
}
