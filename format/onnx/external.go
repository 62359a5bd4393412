package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/elements"
)

// part is a span of an external file.
type part struct {
	path    string
	at, end int64
}

// outside returns where the elements of t lie, once it has seen that they do.
func (r *reader) outside(m *message, t *tensor.Tensor) (p part, err error) {
	if r.opt.Files == nil {
		return p, unsupported("elements in another file: store them in the model (onnx.save_model does), or say in which directory external data lies")
	}
	for _, num := range dataFields {
		if m.has(num) {
			return p, fmt.Errorf("elements in another file and in %s", tensorSchema.fields[num].name)
		}
	}
	need, err := elements.Size(t.Type, t.Shape)
	if err != nil {
		return p, err
	}
	length := need
	if err := r.entries(m, &p, &length); err != nil {
		return p, err
	}
	if !fs.ValidPath(p.path) || p.path == "." || strings.Contains(p.path, `\`) {
		return p, fmt.Errorf("external file %q: its path must lie below the model's directory, be relative and use / only", p.path)
	}
	f, size, err := r.opt.Files(p.path)
	if err == nil {
		err = f.Close()
	}
	switch {
	case err != nil:
		return p, fmt.Errorf("external file %q: %w", p.path, err)
	case length != need:
		return p, fmt.Errorf("%v%v takes %d bytes of elements, external_data gives %d", t.Type, t.Shape, need, length)
	case p.at > size || need > size-p.at:
		return p, fmt.Errorf("external file %q has %d bytes, %d are wanted from byte %d on", p.path, size, need, p.at)
	}
	p.end = p.at + need
	if r.outer += need; r.outer > r.opt.MaxBytes-r.size {
		return p, fmt.Errorf("the model and its external data have more than %d bytes", r.opt.MaxBytes)
	}
	if need > 0 {
		r.parts = append(r.parts, p)
	}
	return p, nil
}

// entries reads the key-value pairs that say where elements lie.
func (r *reader) entries(m *message, p *part, length *int64) error {
	seen := map[string]bool{}
	for x, err := range m.fields() {
		if err != nil {
			return err
		}
		if x.num != tensorFiles {
			continue
		}
		key, value, err := r.entry(x)
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("external_data has two values %q", key)
		}
		seen[key] = true
		switch key {
		case "location":
			p.path = value
		case "offset":
			p.at, err = number(value)
		case "length":
			*length, err = number(value)
		case "checksum": // of another tool; roots say what the elements are
		default:
			err = errors.New("unknown key")
		}
		if err != nil {
			return fmt.Errorf("external_data %q: %w", key, err)
		}
	}
	return nil
}

func (r *reader) entry(x field) (key, value string, err error) {
	m, err := r.message(&entrySchema, x)
	if err != nil {
		return "", "", err
	}
	for y, err := range m.fields() {
		if err != nil {
			return "", "", err
		}
		s, err := r.text(y, graph.MaxName)
		if err != nil {
			return "", "", err
		}
		if y.num == entryKey {
			key = s
		} else {
			value = s
		}
	}
	return key, value, nil
}

func number(s string) (int64, error) {
	u, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of bytes", s)
	}
	return int64(u), nil
}

// checkParts refuses parts that overlap: a small file could otherwise stand for
// any amount of memory.
func checkParts(parts []part) error {
	slices.SortFunc(parts, func(a, b part) int {
		if c := strings.Compare(a.path, b.path); c != 0 {
			return c
		}
		return int(min(max(a.at-b.at, -1), 1))
	})
	for i := 1; i < len(parts); i++ {
		if a, b := parts[i-1], parts[i]; a.path == b.path && b.at < a.end {
			return fmt.Errorf("two tensors share bytes %d to %d of external file %q: give each its own", b.at, min(a.end, b.end), a.path)
		}
	}
	return nil
}
