package split

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consume/outputs"
	"github.com/tally-network/tally/node/consume/parts"
	"github.com/tally-network/tally/node/evidence"
)

// gather joins the results of all parts, and moves them with the proofs to where they are wanted.
func (r *run) gather(report *Report) error {
	var results []map[string]*tensor.Tensor
	for _, p := range r.parts {
		all, err := readResults(filepath.Join(folder(r.stage, p), fetched))
		if err != nil {
			return fmt.Errorf("%s: %w", r.name(p), err)
		}
		results = append(results, all)
	}
	joined, err := parts.Join(results)
	if err != nil {
		return err
	}
	files, err := outputs.Write(r.stage, r.Format, joined, r.batch.Records())
	if err != nil {
		return err
	}
	signers, err := r.signers(report)
	if err != nil {
		return err
	}
	if err := evidence.WriteTrust(r.stage, r.net.Buyer().Chain, signers...); err != nil {
		return err
	}
	if err := moveAll(r.stage, r.Out); err != nil {
		return err
	}
	for _, p := range r.parts { // they are in the joined files
		if err := os.Remove(filepath.Join(folder(r.Out, p), fetched)); err != nil {
			return err
		}
	}
	report.Outputs = map[string]string{}
	for output, file := range files {
		report.Outputs[output] = filepath.Join(r.Out, filepath.Base(file))
	}
	return nil
}

// signers returns the validator sets under which the parts were settled, each once, and reports and remembers them.
func (r *run) signers(report *Report) (all []evidence.Trust, err error) {
	for _, p := range r.parts {
		sets, err := evidence.ReadTrust(filepath.Join(folder(r.stage, p), "trust.json"))
		if err != nil {
			return nil, err
		}
		for _, t := range sets {
			if err := evidence.Remember(r.Home, t); err != nil {
				return nil, err
			}
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
		of := &report.Parts[p.at]
		of.Bundle, of.Trust = filepath.Join(folder(r.Out, p), proof), sets[0].String()
	}
	return all, nil
}

func readResults(file string) (map[string]*tensor.Tensor, error) {
	f, size, err := bounded.Open(file)
	if err != nil {
		return nil, err
	}
	all, _, err := safetensors.Read(f, size, nil)
	return all, errors.Join(err, f.Close())
}

// moveAll moves a directory to a name: at once where nothing is there, else each of its files in place of what has its name.
func moveAll(from, to string) error {
	if err := os.Remove(to); err == nil || errors.Is(err, fs.ErrNotExist) {
		return os.Rename(from, to)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := os.RemoveAll(filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(from)
}

// BundlesOf returns the bundles that a name stands for: the file itself, or of a folder that a delivery made the bundle in it,
// or those of its parts.
func BundlesOf(name string) ([]string, error) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return []string{name}, nil // what is wrong is told once it is opened
	}
	whole := filepath.Join(name, proof)
	if _, err := os.Stat(whole); err == nil {
		return []string{whole}, nil
	}
	var of []string
	for n := 0; ; n++ {
		file := filepath.Join(folder(name, &part{at: n}), proof)
		if _, err := os.Stat(file); err != nil {
			break
		}
		of = append(of, file)
	}
	if len(of) == 0 {
		return nil, fmt.Errorf("%s holds neither %s nor part-1/%s: name a bundle", name, proof, proof)
	}
	return of, nil
}
