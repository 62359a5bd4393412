package zoo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Setting is what may be chosen of an architecture: a number within bounds, or one of some words.
type Setting struct {
	Name    string   `json:"name"`
	Default string   `json:"default"`
	Bounds  *Bounds  `json:"bounds,omitempty"` // of a number
	Words   []string `json:"words,omitempty"`  // that it may be, if it is no number
	About   string   `json:"about"`
}

// Bounds are the least and the greatest number that a setting may be.
type Bounds struct {
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	Whole bool    `json:"whole"` // integers alone
}

// number is a setting that is an integer.
func number(name string, standard, least, most int, about string) Setting {
	return Setting{Name: name, Default: strconv.Itoa(standard), Bounds: &Bounds{float64(least), float64(most), true}, About: about}
}

// word is a setting that is one of some words; the first is its default.
func word(name, about string, words ...string) Setting {
	return Setting{Name: name, Default: words[0], Words: words, About: about}
}

// Range says what s may be.
func (s *Setting) Range() string {
	if s.Bounds == nil {
		return strings.Join(s.Words, ", ")
	}
	return fmt.Sprintf("%v to %v", s.Bounds.Least, s.Bounds.Most)
}

// values are settings that have been checked.
type values struct {
	numbers map[string]float64
	words   map[string]string
	given   map[string]bool
}

// read checks text as a value of s.
func (v *values) read(s *Setting, text string) error {
	if s.Bounds == nil {
		if !slices.Contains(s.Words, text) {
			return fmt.Errorf("%s=%s: give one of %s", s.Name, text, s.Range())
		}
		v.words[s.Name] = text
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.ContainsAny(text, "xXpP_") || s.Bounds.Whole && x != float64(int(x)) || !(x >= s.Bounds.Least && x <= s.Bounds.Most) {
		kind := "number"
		if s.Bounds.Whole {
			kind = "whole number"
		}
		return fmt.Errorf("%s=%s: give a %s from %s", s.Name, text, kind, s.Range())
	}
	v.numbers[s.Name] = x
	return nil
}

// resolve checks what is chosen, and fills in defaults.
func (a *Architecture) resolve(chosen map[string]string) (*values, error) {
	v := &values{map[string]float64{}, map[string]string{}, map[string]bool{}}
	for i := range a.Settings {
		s := &a.Settings[i]
		text, given := chosen[s.Name]
		if !given {
			text = s.Default
		}
		v.given[s.Name] = given
		if err := v.read(s, text); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		if _, known := v.given[name]; !known {
			return nil, fmt.Errorf("%s has no setting %q: there are %s", a.Name, name, strings.Join(a.names(), ", "))
		}
	}
	return v, nil
}

func (a *Architecture) names() (out []string) {
	for i := range a.Settings {
		out = append(out, a.Settings[i].Name)
	}
	return out
}

// int, share and word read settings that the architecture has; asking for others is a mistake of ours.
func (v *values) int(name string) int { return int(v.share(name)) }

func (v *values) share(name string) float64 {
	x, ok := v.numbers[name]
	if !ok {
		panic("no number is called " + name)
	}
	return x
}

func (v *values) word(name string) string {
	x, ok := v.words[name]
	if !ok {
		panic("no word is called " + name)
	}
	return x
}

// Parse reads settings as people write them: name=value, with commas between.
func Parse(texts ...string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range texts {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			name, value, ok := strings.Cut(part, "=")
			name, value = strings.TrimSpace(name), strings.TrimSpace(value)
			switch _, twice := out[name]; {
			case !ok || name == "" || value == "":
				return nil, fmt.Errorf("%q is no name=value: write width=256,layers=4", part)
			case twice:
				return nil, fmt.Errorf("%s is given twice: give it once", name)
			}
			out[name] = value
		}
	}
	return out, nil
}
