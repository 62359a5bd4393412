package backend

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/model"
)

// Limits on one test: of the memory that its values take, and of the steps that
// an executor takes.
const (
	maxMemory = 4 << 30
	maxSteps  = 1 << 36
	// The reference computes a term at a time.
	maxReferenceSteps = 1 << 31
)

// Suite says which tests to run and how.
type Suite struct {
	Dir      string
	Only     *regexp.Regexp // of the tests' paths below Dir; nil is all
	Executor string         // whose outputs must be the expected ones; the other must give the same bits
	Tell     func(Result)   // of each test, when it has run; may be nil
}

// executors returns the named executor and the other, within limits.
func executors(name string) (judged, other engine.Executor, err error) {
	for _, known := range model.Executors {
		e, err := model.Executor(known, cpu.Options{})
		if err != nil {
			return nil, nil, err
		}
		e = engine.Bounded(e, maxMemory)
		if known == "reference" {
			e = engine.Patient(e, maxReferenceSteps)
		} else {
			e = engine.Patient(e, maxSteps)
		}
		if known == name {
			judged = e
		} else {
			other = e
		}
	}
	if judged == nil {
		_, err = model.Executor(name, cpu.Options{})
	}
	return judged, other, err
}

// Report is what a run of a suite tells.
type Report struct {
	Passed        int               `json:"passed"`
	Failed        int               `json:"failed"`
	Unsupported   int               `json:"unsupported"`
	BitMismatches int               `json:"bit_mismatches"`
	Uncompared    int               `json:"uncompared"` // too long for the other executor, so run by one alone
	ByOp          map[string]*Count `json:"by_op"`      // a test counts for each operator in its model
	Failures      []Failure         `json:"failures"`
	Refusals      []Failure         `json:"refusals"` // of what is unsupported
}

// Count is how tests came out.
type Count struct {
	Passed      int `json:"passed"`
	Failed      int `json:"failed"`
	Unsupported int `json:"unsupported"`
}

// Failure is a test that did not pass, and why.
type Failure struct {
	Test  string `json:"test"`
	Error string `json:"error"`
}

// Run runs the tests below s.Dir in the order of their paths.
func (s Suite) Run(ctx context.Context) (*Report, error) {
	if s.Executor == "" {
		s.Executor = model.Executors[0]
	}
	judged, other, err := executors(s.Executor)
	if err != nil {
		return nil, err
	}
	tests, err := s.find()
	if err != nil {
		return nil, err
	}
	r := &Report{ByOp: map[string]*Count{}, Failures: []Failure{}, Refusals: []Failure{}}
	for _, name := range tests {
		t := test{name: name, dir: filepath.Join(s.Dir, filepath.FromSlash(name)), judged: judged, other: other}
		result := t.run(ctx)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.add(result)
		if s.Tell != nil {
			s.Tell(result)
		}
	}
	return r, nil
}

// find returns the paths of the tests below the directory.
func (s Suite) find() (tests []string, err error) {
	if _, err := os.Stat(s.Dir); err != nil { // which names it, as walking it does not
		return nil, err
	}
	tree := os.DirFS(s.Dir)
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "model.onnx" {
			return err
		}
		dir := path.Dir(name)
		sets, err := fs.Glob(tree, path.Join(quote(dir), "test_data_set_*"))
		if len(sets) > 0 && (s.Only == nil || s.Only.MatchString(dir)) {
			tests = append(tests, dir)
		}
		return err
	})
	if err == nil && len(tests) == 0 {
		err = fmt.Errorf("no tests in %s: a test is a folder with model.onnx and test_data_set_0", s.Dir)
	}
	slices.Sort(tests)
	return tests, err
}

// quote makes a path a pattern that it alone matches.
func quote(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

func (r *Report) add(t Result) {
	for _, op := range t.Operators {
		c := r.ByOp[op]
		if c == nil {
			c = &Count{}
			r.ByOp[op] = c
		}
		switch {
		case t.Unsupported:
			c.Unsupported++
		case t.Err != nil:
			c.Failed++
		default:
			c.Passed++
		}
	}
	if t.BitMismatch {
		r.BitMismatches++
	}
	if t.Uncompared {
		r.Uncompared++
	}
	switch {
	case t.Unsupported:
		r.Unsupported++
		r.Refusals = append(r.Refusals, Failure{t.Test, t.Err.Error()})
	case t.Err != nil:
		r.Failed++
		r.Failures = append(r.Failures, Failure{t.Test, t.Err.Error()})
	default:
		r.Passed++
	}
}
