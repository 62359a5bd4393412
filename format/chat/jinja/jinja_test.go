package jinja

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// answers are templates with what transformers makes of them; null is an error.
type answers struct {
	Names   json.RawMessage
	Answers [][2]*string
}

var date = time.Date(2024, 7, 26, 9, 5, 3, 42000, time.UTC)

// render parses and renders a template.
func render(source string, names *Dict) (string, error) {
	t, err := Parse(source)
	if err != nil {
		return "", err
	}
	return t.Render(names, date)
}

func names(t testing.TB, raw []byte) *Dict {
	t.Helper()
	v, err := FromJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*Dict)
}

// Templates give what they give in transformers, and fail where they fail there. JINJA_ANSWERS
// names a file of more answers.
func TestAnswers(t *testing.T) {
	file := "testdata/answers.json"
	if more := os.Getenv("JINJA_ANSWERS"); more != "" {
		file = more
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var a answers
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatal(err)
	}
	given := names(t, a.Names)
	for _, pair := range a.Answers {
		source, want := *pair[0], pair[1]
		got, err := render(source, given)
		switch {
		case want == nil && err == nil:
			t.Errorf("%q\n gives %q, and is an error in Python", source, got)
		case want != nil && err != nil:
			t.Errorf("%q\n error: %v\n want  %q", source, err, *want)
		case want != nil && got != *want:
			t.Errorf("%q\n gives %q\n want  %q", source, got, *want)
		}
	}
}
