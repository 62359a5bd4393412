package schema_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/tally-network/tally/format/schema"
)

var red, none = "<red>", ""

var whole = schema.Schema{
	Version: 1, Inputs: []schema.Input{{"features", []schema.Column{{Name: "length"}, {"colour", &red}, {"colour", &none}}}, {"image", []schema.Column{{Name: "image"}}}},
	Target: &schema.Target{Name: "kind", Classes: []string{"cat", "dog"}},
}

func TestReadGivesWhatWasEncoded(t *testing.T) {
	for _, s := range []schema.Schema{whole, {Version: 1, Inputs: []schema.Input{}}} {
		b, err := s.Encoded()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := schema.Read(bytes.NewReader(b)); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("read %+v, %v, encoded %+v", got, err, s)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	b, err := whole.Encoded()
	if err != nil {
		t.Fatal(err)
	}
	for what, file := range map[string]string{
		"nothing":         "",
		"another version": strings.Replace(string(b), `"version":1`, `"version":2`, 1),
		"another form":    " " + string(b),
		"what is unknown": strings.Replace(string(b), `"version":1`, `"version":1,"more":1`, 1),
		"too much":        `"` + strings.Repeat("x", schema.MaxBytes) + `"`,
	} {
		if s, err := schema.Read(strings.NewReader(file)); err == nil {
			t.Errorf("%s was read: %+v", what, s)
		}
	}
}

func FuzzRead(f *testing.F) {
	b, err := whole.Encoded()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := schema.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		if again, err := s.Encoded(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%q was read, and is written %q, %v", b, again, err)
		}
	})
}
