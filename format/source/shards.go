package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tally-network/tally/format/images"
	"github.com/tally-network/tally/format/table"
)

// MaxShards bounds the files of one table.
const MaxShards = 1 << 14

// shown is how many names of files an error lists.
const shown = 12

// splits are the words by which files and folders say what their records are for, as Hugging Face's datasets reads them.
var splits = []struct {
	name string
	form *regexp.Regexp
}{
	{"train", regexp.MustCompile(`(?i)(^|[^a-z])train(ing)?([^a-z]|$)`)},
	{"validation", regexp.MustCompile(`(?i)(^|[^a-z])(validation|valid|val|dev)([^a-z]|$)`)},
	{"test", regexp.MustCompile(`(?i)(^|[^a-z])(test|testing|eval|evaluation)([^a-z]|$)`)},
}

// splitOf returns what the records of a file are for, as its name says, or else its folders; "" if nothing does.
func splitOf(name string) string {
	for ; name != "." && name != "/" && name != ""; name = path.Dir(name) {
		for _, s := range splits {
			if s.form.MatchString(path.Base(name)) {
				return s.name
			}
		}
	}
	return ""
}

// Select returns those of some files that are one table, in their order. A pattern is the name of one, a folder, or holds
// * ? [ as shells have them; what it matches is taken. Without one, or of a folder, it is the files that can be read whose names say
// that they are for training, or all if no name says what for. They are one file, or shards, whose names differ in digits alone. Which
// files are meant has to be clear, or the error lists them.
func Select(names []string, pattern string) ([]string, error) {
	if slices.Contains(names, pattern) {
		return []string{pattern}, nil
	}
	var readable []string
	for _, name := range names {
		if isReadable(name) {
			readable = append(readable, name)
		}
	}
	isGlob := HasGlob(pattern)
	folder := strings.TrimSuffix(pattern, "/") + "/"
	var taken []string
	for _, name := range readable {
		matches := pattern == "" || strings.HasPrefix(name, folder)
		if isGlob {
			var err error
			if matches, err = path.Match(pattern, name); err != nil {
				return nil, fmt.Errorf("%.80q: %w: a [ is closed by ]", pattern, err)
			}
		}
		if matches {
			taken = append(taken, name)
		}
	}
	if len(taken) == 0 {
		if pattern == "" {
			return nil, fmt.Errorf("none of its files ends in one of %s", strings.Join(Ends(), ", "))
		}
		return nil, fmt.Errorf("it has no file %.80q, but %s", pattern, list(readable))
	}
	if !isGlob {
		taken = forTraining(taken)
	}
	slices.SortFunc(taken, natural)
	if len(taken) > MaxShards {
		return nil, fmt.Errorf("%d files, limit %d: name a part of them", len(taken), MaxShards)
	}
	return taken, checkShards(taken, isGlob)
}

// HasGlob reports whether a name is a pattern for several.
func HasGlob(name string) bool { return strings.ContainsAny(name, "*?[") }

// isReadable reports whether a file holds a table, by its name. What begins with a dot or an underline is no data.
func isReadable(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") {
			return false
		}
	}
	return formats[strings.ToLower(path.Ext(name))] != nil
}

// forTraining returns the files for training, or all if no name says what for.
func forTraining(names []string) []string {
	var training, silent []string
	for _, name := range names {
		switch splitOf(name) {
		case "train":
			training = append(training, name)
		case "":
			silent = append(silent, name)
		}
	}
	if len(training) > 0 {
		return training
	}
	if len(silent) == len(names) {
		return silent
	}
	return names // which are refused if there are several
}

var (
	shardOf = regexp.MustCompile(`(\d{4,6})-of-(\d{4,6})`)
	varying = regexp.MustCompile(`-[0-9a-f]{16}\b|\d+`) // a digest that the hub's tools append, or a number
)

// checkShards returns an error unless files are one table, of which nothing is missing. Those that somebody has named need
// only have one format.
func checkShards(names []string, named bool) error {
	first := names[0]
	for _, name := range names {
		alike := path.Dir(name) == path.Dir(first) && varying.ReplaceAllString(path.Base(name), "") == varying.ReplaceAllString(path.Base(first), "")
		if named {
			alike = strings.EqualFold(path.Ext(name), path.Ext(first))
		}
		if !alike {
			return fmt.Errorf("it has %d files that may be meant: choose a file, a folder or a pattern such as data/train-*.parquet, of %s", len(names), list(names))
		}
	}
	if m := shardOf.FindStringSubmatch(path.Base(first)); m != nil && !named {
		if n, err := strconv.Atoi(m[2]); err != nil || n != len(names) {
			return fmt.Errorf("%d files, of %s that %s names: the others are missing, so fetch them, or name a pattern", len(names), m[2], first)
		}
	}
	return nil
}

// list names some files for an error.
func list(names []string) string {
	more := ""
	if len(names) > shown {
		more = fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return fmt.Sprintf("%q", names[:min(len(names), shown)]) + more
}

var digits = regexp.MustCompile(`\d+`)

// natural compares names so that 2 comes before 10.
func natural(a, b string) int {
	padded := func(s string) string {
		return digits.ReplaceAllStringFunc(s, func(d string) string { return strings.Repeat("0", max(0, 20-len(d))) + d })
	}
	return cmp.Or(cmp.Compare(padded(a), padded(b)), cmp.Compare(a, b))
}

// Opener opens a file of a folder by its name there, and returns its size.
type Opener func(name string) (*os.File, int64, error)

// ReadFolder returns the table in a folder: what [Select] takes of the files that lie there themselves, or else its images.
func ReadFolder(folder fs.FS, open Opener, pattern string, o Options) (*table.Table, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && isReadable(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 && pattern == "" {
		of := o.Images
		of.Allocator = o.Allocator
		t, err := as(o.Kinds)(images.Read(folder, of))
		if err != nil {
			return nil, err
		}
		return o.remembered(t), nil
	}
	if names, err = Select(names, pattern); err != nil {
		return nil, err
	}
	var parts []*table.Table
	for _, name := range names {
		f, size, err := open(name)
		if err != nil {
			return nil, err
		}
		part, err := Read(name, f, size, o)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	defer runtime.KeepAlive(parts)
	return as(o.Kinds)(table.Concat(parts...))
}
