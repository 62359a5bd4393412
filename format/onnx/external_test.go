package onnx

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/internal/bounded"
)

// stored is an initializer of int32 elements in another file.
func stored(name string, dim int64, entries ...string) []byte {
	b := join(num(tensorDims, dim), num(tensorType, 6), str(tensorName, name), num(tensorLocation, 1))
	for i := 0; i < len(entries); i += 2 {
		b = append(b, msg(tensorFiles, str(entryKey, entries[i]), str(entryValue, entries[i+1]))...)
	}
	return msg(graphConst, b)
}

func add2(consts ...[]byte) []byte {
	return model(21, append(consts, nodeOf("Add", []string{"a", "b"}, []string{"y"}), valueOf(graphOutput, "y", 6, 2))...)
}

func external(t *testing.T) func(string) (*os.File, int64, error) {
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, sub := range []string{"model", "model/sub"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("secret", "12345678")
	write("model/w", "\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00")
	write("model/.w", "12345678")
	write("model/sub/w", "\x05\x00\x00\x00\x06\x00\x00\x00")
	if err := os.Symlink("../secret", filepath.Join(dir, "model", "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "model", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	return bounded.Beside(filepath.Join(dir, "model", "model.onnx"))
}

func TestExternalData(t *testing.T) {
	g, err := read(add2(
		stored("a", 2, "location", "w", "offset", "8", "length", "8", "checksum", "x"),
		stored("b", 2, "location", "sub/w"),
	), Options{Files: external(t)})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]int32{"a": {3, 4}, "b": {5, 6}} {
		if got := g.Const(name); !got.Equal(tensor.Must(tensor.From(tensor.Shape{2}, want))) {
			t.Errorf("%s is %v", name, tensor.Of[int32](got))
		}
	}
}

func TestExternalDataRefused(t *testing.T) {
	root := external(t)
	b := stored("b", 2, "location", "sub/w")
	for name, c := range map[string]struct {
		a    []byte
		opt  Options
		want string
	}{
		"not allowed":     {stored("a", 2, "location", "w"), Options{}, "elements in another file"},
		"no location":     {stored("a", 2), Options{Files: root}, "must lie below"},
		"absolute":        {stored("a", 2, "location", "/etc/passwd"), Options{Files: root}, "must lie below"},
		"parent":          {stored("a", 2, "location", "../secret"), Options{Files: root}, "must lie below"},
		"hidden parent":   {stored("a", 2, "location", "sub/../../secret"), Options{Files: root}, "must lie below"},
		"backslash":       {stored("a", 2, "location", `..\secret`), Options{Files: root}, "must lie below"},
		"link out":        {stored("a", 2, "location", "link"), Options{Files: root}, "outside the folders"},
		"directory":       {stored("a", 2, "location", "sub"), Options{Files: root}, "name a regular file"},
		"pipe":            {stored("a", 2, "location", "pipe"), Options{Files: root}, "name a regular file"},
		"hidden":          {stored("a", 2, "location", ".w"), Options{Files: root}, "is hidden"},
		"absent":          {stored("a", 2, "location", "nowhere"), Options{Files: root}, "no such file"},
		"too long":        {stored("a", 5, "location", "w"), Options{Files: root}, "has 16 bytes, 20 are wanted from byte 0"},
		"past the end":    {stored("a", 2, "location", "w", "offset", "12"), Options{Files: root}, "are wanted from byte 12"},
		"far past":        {stored("a", 2, "location", "w", "offset", "9223372036854775807"), Options{Files: root}, "are wanted from byte"},
		"negative offset": {stored("a", 2, "location", "w", "offset", "-8"), Options{Files: root}, "not a number of bytes"},
		"huge offset":     {stored("a", 2, "location", "w", "offset", "18446744073709551615"), Options{Files: root}, "not a number of bytes"},
		"wrong length":    {stored("a", 2, "location", "w", "length", "16"), Options{Files: root}, "takes 8 bytes of elements, external_data gives 16"},
		"overlap":         {join(stored("a", 2, "location", "w"), stored("c", 2, "location", "w", "offset", "4")), Options{Files: root}, "share bytes 4 to 8"},
		"same bytes":      {join(stored("a", 2, "location", "w"), stored("c", 2, "location", "w")), Options{Files: root}, "share bytes 0 to 8"},
		"unknown key":     {stored("a", 2, "location", "w", "basepath", "/"), Options{Files: root}, `external_data "basepath": unknown key`},
		"key twice":       {stored("a", 2, "location", "w", "location", "w"), Options{Files: root}, "two values"},
		"inside too":      {msg(graphConst, num(tensorType, 1), num(tensorLocation, 1), msg(tensorFiles, str(1, "location"), str(2, "w")), str(tensorRaw, "abcd")), Options{Files: root}, "elements in another file and in raw_data"},
	} {
		if _, err := read(add2(c.a, b), c.opt); err == nil {
			t.Errorf("%s: read", name)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wanted %q", name, err, c.want)
		}
	}
	file := add2(stored("a", 2, "location", "w"), b)
	for above, ok := range map[int64]bool{15: false, 16: true} {
		if _, err := read(file, Options{Files: root, MaxBytes: int64(len(file)) + above}); (err == nil) != ok {
			t.Errorf("16 bytes outside, %d allowed: %v", above, err)
		}
	}
	if _, err := read(file, Options{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("external data without a root: %v is not errors.ErrUnsupported", err)
	}
}
