// Package spec gives programs the tables of its documents that they print or are tested against.
//
// Begin with [Rules].
//
// Invariants: a table is what its document shows people, so that there is no second copy to fall behind.
package spec

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed rules.md
var rules string

// Rule is a line of rules.md: a parameter of a module that a vote can set. Numbers have no commas.
type Rule struct {
	Module  string `json:"module"`
	Name    string `json:"name"`
	Default string `json:"default"`
	Bounds  string `json:"bounds"`
	Unit    string `json:"unit"` // "–" if it has none
	Why     string `json:"why"`
}

var (
	ruleLine  = regexp.MustCompile("^\\| `([a-z]+)\\.([a-z_]+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")
	thousands = regexp.MustCompile(`([0-9]),([0-9]{3})`)
	ruleRange = regexp.MustCompile(`^([0-9]+) to ([0-9]+)$`)
)

// Rules returns the table of rules.md, in its order. It panics if a line of the table cannot be read, which a
// test finds.
func Rules() (out []Rule) {
	for line := range strings.Lines(rules) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		m := ruleLine.FindStringSubmatch(line)
		if m == nil {
			panic(fmt.Sprintf("rules.md: want six columns, the first as `module.rule`: %s", line))
		}
		out = append(out, Rule{
			Module: m[1], Name: m[2], Default: digits(m[3]), Bounds: plain(digits(m[4])), Unit: m[5], Why: plain(m[6]),
		})
	}
	return out
}

// Range returns the least and the most that a vote may set a rule to, if its bounds are two numbers.
func (r *Rule) Range() (least, most uint64, ok bool) {
	m := ruleRange.FindStringSubmatch(r.Bounds)
	if m == nil {
		return 0, 0, false
	}
	least, e1 := strconv.ParseUint(m[1], 10, 64)
	most, e2 := strconv.ParseUint(m[2], 10, 64)
	return least, most, e1 == nil && e2 == nil
}

// digits takes the commas out of numbers.
func digits(s string) string {
	for thousands.MatchString(s) {
		s = thousands.ReplaceAllString(s, "$1$2")
	}
	return s
}

// plain takes the marks of code out.
func plain(s string) string { return strings.ReplaceAll(s, "`", "") }

// Text writes what JSON has of a rule as the table does.
func Text(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	var parts []string
	for _, x := range list {
		fields, ok := x.(map[string]any)
		if !ok {
			parts = append(parts, fmt.Sprint(x))
			continue
		}
		var one []string
		for _, k := range slices.Sorted(maps.Keys(fields)) {
			one = append(one, fmt.Sprint(fields[k]))
		}
		parts = append(parts, strings.Join(one, " "))
	}
	return strings.Join(parts, ", ")
}
