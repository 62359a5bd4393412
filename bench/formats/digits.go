package formats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/dataset"
)

// Files of the digits, which bench/peers/digits.py writes.
const (
	digitsName  = "digits.npz"
	digitsTerms = "digits.json"
)

// digits measures what is learnt: models trained on scikit-learn's handwritten digits, as an order trains them, beside the same models in
// PyTorch. Both sides begin with the same weights and see the same records, in orders of their own.
func digits(ctx context.Context, dir string) (all []Figure, err error) {
	b, err := os.ReadFile(filepath.Join(dir, digitsTerms))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var terms struct {
		Batch, Steps int
		Rate         float32
		Accuracy     map[string][]float64 // by model, of PyTorch with each seed
	}
	if err := json.Unmarshal(b, &terms); err != nil {
		return nil, err
	}
	for _, name := range []string{"mlp", "lenet"} {
		n := float64(len(terms.Accuracy[name]))
		if n == 0 {
			continue
		}
		var ours, theirs float64
		for i, accuracy := range terms.Accuracy[name] {
			s := consume.Default()
			s.Folders = []string{dir}
			p := &s.Problem
			p.Model, p.Seed = filepath.Join(dir, fmt.Sprintf("digits-%s-%d.onnx", name, i+1)), uint64(i+1)
			p.Data = &dataset.Options{Source: filepath.Join(dir, digitsName), Target: "digit", Normalize: dataset.None, HeldOut: dataset.HeldOut{Column: "part", Value: "1"}}
			p.Optimizer = consume.SpecOptimizer{Name: "adam", LearningRate: terms.Rate, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
			p.Rounds, p.Shards, p.Steps, p.Batch = 1, 1, terms.Steps, terms.Batch
			one, err := learnt(ctx, s)
			if err != nil {
				return nil, fmt.Errorf("digits, %s: %w", name, err)
			}
			ours, theirs = ours+one/n, theirs+accuracy/n
		}
		all = append(all,
			Figure{Name: "formats/digits/" + name, Unit: "% of held-out digits, mean of the seeds", Value: ours},
			Figure{Name: "formats/digits/" + name + "/difference", Unit: "points above PyTorch's mean", Value: ours - theirs, Least: -1},
		)
	}
	return all, nil
}

// learnt trains as an order says, and returns the percentage of held-out records that are right.
func learnt(ctx context.Context, s consume.Spec) (float64, error) {
	exec := cpu.New(1)
	d, err := consume.NewDraft(ctx, s, exec)
	if err != nil {
		return 0, err
	}
	u := d.Job.UnitOf(&d.Problem, 0)
	end, err := u.Play(ctx, d.Job.Start, 0, d.Problem.Steps, nil)
	if err != nil {
		return 0, err
	}
	scores, err := d.Job.Scores(ctx, end, d.HeldOut, exec)
	return 100 * scores.Of("accuracy"), err
}
