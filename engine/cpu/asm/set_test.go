package asm

import (
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	all := Sets()
	if last := all[len(all)-1]; last != Generic {
		t.Fatalf("the last set is %s", last.Name)
	}
	for _, s := range all {
		if got, err := choose(s.Name); got != s || err != nil {
			t.Errorf("%s: %v, %v", s.Name, got, err)
		}
	}
	if got, err := choose(""); got != all[0] || err != nil {
		t.Errorf("without a name: %v, %v", got, err)
	}
	if _, err := choose("mmx"); err == nil || !strings.Contains(err.Error(), "TALLY_CPU=mmx") || !strings.Contains(err.Error(), "generic") {
		t.Errorf("unknown set: %v", err)
	}
}
