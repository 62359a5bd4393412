package cli

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tally-network/tally/cli/data"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/dataset"
)

// The example names everything that an order may say, and is one itself.
func TestExampleOrderIsWhole(t *testing.T) {
	for _, of := range []any{consume.Spec{}, consume.SpecProblem{}, consume.SpecConditions{}, consume.SpecAssurance{}, consume.SpecAudit{}, consume.SpecAdapters{}, consume.SpecOptimizer{}, dataset.Options{}, dataset.Augment{}, dataset.Texts{}, dataset.HeldOut{}, dataset.Loss{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(data.ExampleOrder) {
				t.Errorf("the example does not name %s", name)
			}
		}
	}
	example := strings.ReplaceAll(data.ExampleOrder, "tally1…", chaintest.Named("v0").String())
	if _, err := consume.ParseSpec([]byte(example)); err != nil {
		t.Error(err)
	}
	data := regexp.MustCompile(`(?m)^  # (data:|  \w+:)`).ReplaceAllString(example, "  $1")
	data = regexp.MustCompile(`(?m)^  (text|loss): .*\n`).ReplaceAllString(data, "")
	if s, err := consume.ParseSpec([]byte(data)); err != nil || s.Problem.Data == nil || s.Problem.Data.HeldOut.Seed != 7 {
		t.Errorf("an order of data: %v", err)
	}
	// Of those that exclude one another, one alone.
	all := regexp.MustCompile(`(?m)^( +)# (\w+: +[^# ])`).ReplaceAllString(example, "$1$2")
	for form, others := range map[string]string{"audit": "replicas|watched", "replicas": "audit|watched", "watched": "audit|replicas"} {
		one := regexp.MustCompile(`(?m)^ +(continue|`+others+`): .*\n`).ReplaceAllString(all, "")
		if _, err := consume.ParseSpec([]byte(one)); err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
}
