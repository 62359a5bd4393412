package steps

import (
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/model/lm"
)

// Table is the steps of a model in hashes.
type Table struct {
	Layers, Chunks int

	model    *lm.Model
	programs map[cell]canon.Hash
	weights  []canon.Hash // by column
	tree     *canon.Tree
}

// Programs returns how many programs the steps have between them.
func (t *Table) Programs() int { return len(t.programs) }

// cell is what a program follows from.
type cell struct {
	kind  string
	chunk int // 0 where it changes nothing
}

func cellOf(m *lm.Model, chunk, column int) cell {
	kind, byChunk := m.ColumnKind(column)
	if !byChunk {
		chunk = 0
	}
	return cell{kind, chunk}
}

// New makes the table of a model whose weights have the given roots, on so many threads. It fails if its replies cannot be disputed.
func New(m *lm.Model, roots map[string]canon.Hash, threads int) (*Table, error) {
	chunks := min((m.Context+lm.Chunk-1)/lm.Chunk, dispute.MostChunks(m.Layers))
	t := &Table{Layers: m.Layers, Chunks: chunks, model: m, programs: map[cell]canon.Hash{}}
	if err := (&dispute.Model{Layers: t.Layers, Chunks: t.Chunks}).Check(); err != nil {
		return nil, err
	}
	cells := make([][]cell, chunks)
	type job struct{ chunk, column int }
	var jobs []job
	for c := range cells {
		cells[c] = make([]cell, m.Columns())
		for column := range cells[c] {
			x := cellOf(m, c, column)
			if _, known := t.programs[x]; !known {
				t.programs[x] = canon.Hash{}
				jobs = append(jobs, job{c, column})
			}
			cells[c][column] = x
		}
	}
	programs := make([]canon.Hash, len(jobs))
	err := engine.Split(threads, len(jobs), 1, func(_, lo, hi int) error {
		for i := lo; i < hi; i++ {
			p, err := m.Column(jobs[i].chunk, jobs[i].column)
			if err != nil {
				return err
			}
			programs[i] = p.Commit().Root()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, j := range jobs {
		t.programs[cells[j.chunk][j.column]] = programs[i]
	}
	for column := range m.Columns() {
		t.weights = append(t.weights, m.ColumnRoot(column, roots))
	}
	var leaves []canon.Hash
	for _, row := range cells {
		for column, x := range row {
			leaves = append(leaves, dispute.StepLeaf(t.programs[x], t.weights[column]))
		}
	}
	t.tree = canon.NewTree(leaves)
	return t, nil
}

// Root returns the root over all steps.
func (t *Table) Root() canon.Hash { return t.tree.Root() }

// Step opens a step.
func (t *Table) Step(chunk, column int) (program, weights canon.Hash, path []canon.Hash) {
	return t.programs[cellOf(t.model, chunk, column)], t.weights[column], t.tree.Prove(chunk*t.model.Columns() + column)
}
