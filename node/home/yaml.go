package home

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	plain "github.com/tally-network/tally/format/yaml"
	"github.com/tally-network/tally/internal/bounded"
)

const maxSettings = 64 << 10

// unknown is how the parser puts it.
var unknown = regexp.MustCompile(`field (\S+) not found in type \S+`)

// LoadSettings reads the settings of a home.
func LoadSettings(dir string) (Settings, error) {
	path := filepath.Join(dir, settingsFile)
	text, err := bounded.ReadFile(path, maxSettings)
	if err != nil {
		return Settings{}, err
	}
	s, err := ParseSettings(text)
	if err != nil {
		return Settings{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// ParseSettings reads settings from YAML. Unknown keys, keys that occur twice
// and values that cannot be are errors.
func ParseSettings(text []byte) (s Settings, err error) {
	if len(text) > maxSettings {
		return s, fmt.Errorf("settings are longer than %d bytes", maxSettings)
	}
	if err := plain.Plain(text); err != nil {
		return s, err
	}
	if err := wholeNumbers(text); err != nil {
		return s, err
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); errors.Is(err, io.EOF) {
		return s, errors.New("settings are empty")
	} else if err != nil {
		return s, errors.New(unknown.ReplaceAllString(plain.Plainly(text, err).Error(), `unknown key "$1"`))
	}
	return s, s.Check()
}

// wholeNumbers returns an error about the first number with a fraction: no setting has
// one, and the decoder would cut it off.
func wholeNumbers(text []byte) error {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil // the decoder says why
	}
	nodes := []*yaml.Node{&root}
	for len(nodes) > 0 {
		n := nodes[0]
		nodes = append(nodes[1:], n.Content...)
		var x float64
		if n.Kind == yaml.ScalarNode && n.Tag == "!!float" && n.Decode(&x) == nil && x != math.Trunc(x) {
			return fmt.Errorf("line %d: %s is no whole number", n.Line, n.Value)
		}
	}
	return nil
}

// Save writes the settings of a home, each with a comment on what it means.
func (s *Settings) Save(dir string) error {
	text, err := s.encode()
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, settingsFile), text, 0o600)
}

func (s *Settings) encode() ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	var n yaml.Node
	if err := n.Encode(s); err != nil {
		return nil, err
	}
	comment(&n, reflect.TypeFor[Settings]())
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&n); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// comment puts the doc tags of t above the keys of a mapping.
func comment(n *yaml.Node, t reflect.Type) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		for f := range t.NumField() {
			f := t.Field(f)
			if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != n.Content[i].Value {
				continue
			}
			n.Content[i].HeadComment = f.Tag.Get("doc")
			if f.Type.Kind() == reflect.Pointer {
				f.Type = f.Type.Elem()
			}
			if f.Type.Kind() == reflect.Struct {
				comment(n.Content[i+1], f.Type)
			}
		}
	}
}
