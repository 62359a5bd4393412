package consume

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/format/schema"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/format/text"
	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/scratch"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/consume/choice"
	"github.com/tally-network/tally/node/consume/dataset"
	"github.com/tally-network/tally/node/consume/models"
	"github.com/tally-network/tally/node/consume/teacher"
	"github.com/tally-network/tally/node/consume/tokens"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/store"
)

// MaxText bounds a training text in bytes.
const MaxText = 1 << 30

// Draft is an order before it is posted: the problem made concrete, and the
// files that make it up.
type Draft struct {
	Problem job.Problem // without files
	Terms   job.Conditions
	Project uint64 // of drilling, of which it is a task; 0: of none
	Bid     Amount // at auctions with sealed bids; 0: its maximum price
	Job     *replay.Job
	Files   []DraftFile

	NotFinite int // records of a batch of which an element is not finite: so are their results, mostly

	// Of training alone.
	Spec          Spec
	HeldOut       *tensor.Tensor
	Teacher       teacher.Cost    // none: zero
	Tokenizer     *text.Tokenizer // of a text whose tokens are characters
	TokenizerFile []byte          // of texts: that of Tokenizer, or a tokenizer.json
	Schema        *schema.Schema  // of other data
	Loss          float32         // of the start state on the first batch, of a text in nats a token
	Texts         int             // among data
	Truncated     int             // of these, whose end is left out
	Dropped       int             // records of these, of which nothing would be learnt
	Unknown       float64         // share of the training text whose characters have no token, for the model has too few outputs
}

// Trained names the initializers of the model that training changes: buffers that were exported as
// such, too, unless they are frozen. A batch trains none.
func (d *Draft) Trained() []string {
	if d.Problem.Kind != job.Training {
		return nil
	}
	return train.Parameters(d.Job.Start)
}

// Unused returns how many records the runs of a batch could take besides. They are paid for like others.
func (d *Draft) Unused() int {
	p := &d.Problem
	if p.Kind != job.Batch {
		return 0
	}
	return (p.Records-1)/p.Batch*p.Batch + p.Batch - p.Records
}

// DraftFile is one of the order's files, in parts.
type DraftFile struct {
	Role  string
	Parts [][]byte
	owner any // of their memory, if that is not Go's
}

// file returns a file of parts, one after the other.
func file(role string, parts ...[]byte) DraftFile { return DraftFile{Role: role, Parts: parts} }

// fileOf returns a file of a tensor, which is not copied.
func fileOf(role string, t *tensor.Tensor) DraftFile {
	return DraftFile{role, [][]byte{canon.Encode(t.Head), t.Bytes()}, t}
}

// ref returns what a store calls the file.
func (f *DraftFile) ref() store.Ref {
	defer runtime.KeepAlive(f)
	return store.RefOf(f.Parts...)
}

// segment is the number of steps between checkpoints of an order that does not say.
const segment = 8

// NewDraft reads the files that a spec names, in the folders of it, makes the programs, and tries one
// step: what cannot be trained is found here, before money is locked.
func NewDraft(ctx context.Context, s Spec, exec engine.Executor) (*Draft, error) {
	from, err := s.readOrigin(ctx, exec)
	if err != nil {
		return nil, err
	}
	if s.Problem.Data != nil {
		return fromData(ctx, s, from, exec)
	}
	if from.Tokens == nil {
		if from.Tokens, err = s.readTokens(); err != nil {
			return nil, err
		}
	}
	body, err := s.readText()
	if err != nil {
		return nil, err
	}
	return FromParts(ctx, s, from, body, exec)
}

// readModel reads the model. If one symbolic dimension is left open, as in what an order has delivered, it is the batch.
func (s *Spec) readModel() (*graph.Graph, error) {
	p := &s.Problem
	g, err := models.Read(s.Folders, p.Model, onnx.Options{Dims: p.Dims})
	if open := new(onnx.SymbolError); errors.As(err, &open) && len(open.Symbols) == 1 {
		dims := maps.Clone(p.Dims)
		if dims == nil {
			dims = map[string]int{}
		}
		dims[open.Symbols[0]] = p.Batch
		sized, wrong := models.Read(s.Folders, p.Model, onnx.Options{Dims: dims})
		if wrong == nil && !slices.ContainsFunc(sized.Inputs, func(v graph.Value) bool { return len(v.Shape) == 0 || v.Shape[0] != p.Batch }) {
			return sized, nil
		}
	}
	return g, err
}

func (s *Spec) readText() (string, error) {
	f, size, err := s.open("text", s.Problem.Text)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if size > MaxText {
		return "", fmt.Errorf("text %s has %d bytes, limit %d: train on a part of it", s.Problem.Text, size, MaxText)
	}
	body, err := text.Read(f, MaxText)
	if err != nil {
		return "", fmt.Errorf("text %s: %w", s.Problem.Text, err)
	}
	return body, nil
}

// readTokens reads the tokenizer that a spec names; nil if it names none.
func (s *Spec) readTokens() (t *tokens.Tokenizer, err error) {
	if s.Problem.Tokenizer == "" {
		return nil, nil
	}
	f, size, err := s.open("tokenizer", s.Problem.Tokenizer)
	if err != nil {
		return nil, err
	}
	b, err := bounded.ReadAll(f, size, tokenizer.MaxFile)
	if err == nil {
		t, err = tokens.Read(b)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		err = fmt.Errorf("tokenizer %s: %w", s.Problem.Tokenizer, err)
	}
	return t, err
}

// FromParts makes a draft of an origin and a text in memory.
func FromParts(ctx context.Context, s Spec, from Origin, body string, exec engine.Executor) (*Draft, error) {
	d := &Draft{Spec: s}
	columns, vocabulary, err := tokens.Shape(from.student(), s.Problem.Batch)
	if err != nil {
		return nil, err
	}
	trainText, heldText, err := text.Split(body)
	if err != nil {
		return nil, err
	}
	by := from.Tokens
	if by == nil {
		if by, err = tokens.Characters(trainText, vocabulary); err != nil {
			return nil, err
		}
	}
	if err := by.Fits(vocabulary); err != nil {
		return nil, err
	}
	d.Tokenizer, d.TokenizerFile = by.Characters, by.File
	records := func(s string) (*tensor.Tensor, error) {
		ids, err := by.Encode(s)
		if err != nil {
			return nil, err
		}
		return text.Records(ids, columns)
	}
	data, err := records(trainText)
	if err != nil {
		return nil, fmt.Errorf("training text: %w", err)
	}
	if d.Tokenizer != nil {
		d.Unknown = tokens.Unknown(data)
	}
	if d.HeldOut, err = records(heldText); err != nil {
		return nil, fmt.Errorf("the last tenth of the text, which is held out: %w", err)
	}
	return d, d.finish(ctx, from, replay.Inputs{Model: from.Model, Recipe: s.Recipe(), Data: data, Parent: from.Parent}, exec)
}

// fromData makes a draft of an origin and the data that a spec names.
func fromData(ctx context.Context, s Spec, from Origin, exec engine.Executor) (*Draft, error) {
	height, width := dataset.ImageSize(from.Model)
	data := *s.Problem.Data
	data.Allocator = scratch.Allocator("")
	folders, _, err := data.Fetch(ctx, s.Trusted, s.Fetching)
	if err != nil {
		return nil, err
	}
	folders = append(folders, s.Folders...)
	t, err := data.Read(folders, height, width)
	if err != nil {
		return nil, err
	}
	of, err := from.dataset(&data, t, folders, s.Problem.Loss.Objective())
	if err != nil {
		return nil, err
	}
	if from.Parent == nil {
		from.Model, from.Own = of.Model, of.Own
	}
	d := &Draft{Spec: s, HeldOut: of.HeldOut, Schema: &of.Schema, TokenizerFile: of.Tokenizer, Texts: of.Texts, Truncated: of.Truncated, Dropped: of.Dropped}
	r := s.Recipe()
	r.Fields, r.Loss, r.LossOptions, r.Augment = of.Fields, of.Objective.Name, of.Objective.LossOptions, of.Augment
	return d, d.finish(ctx, from, replay.Inputs{Model: from.Model, Recipe: r, Data: of.Training, Parent: from.Parent}, exec)
}

// dataset makes of a table what an order trains on. Tokenizers and templates lie in some folders.
func (o *Origin) dataset(of *dataset.Options, t *table.Table, folders []string, objective dataset.Objective) (*dataset.Dataset, error) {
	if o.Base != nil {
		e, err := o.Base.OpenEncoder(of, folders)
		if err != nil {
			return nil, err
		}
		return of.GoOn(t, e, o.Base, objective)
	}
	e, err := of.OpenEncoder(folders)
	if err != nil {
		return nil, err
	}
	return of.Make(t, e, o.Model, objective)
}

// finish makes the programs and the files of a draft, and tries one step.
func (d *Draft) finish(ctx context.Context, from Origin, in replay.Inputs, exec engine.Executor) (err error) {
	s := &d.Spec
	if err := d.teach(&from, &in); err != nil {
		return err
	}
	if d.Job, err = replay.New(ctx, in, s.Problem.Shards, exec); err != nil {
		return err
	}
	p := &d.Problem
	p.Rounds, p.Steps, p.Interval, p.Seed = s.Problem.Rounds, s.Problem.Steps, s.Problem.Interval, s.Problem.Seed
	if err := errors.Join(choice.Check(d.Job, d.HeldOut), d.Job.Bind(p)); err != nil {
		return err
	}
	if from.Parent != nil {
		p.Parent.Order = from.Parent.Order.ID()
		if p.Parent.Final, err = from.Parent.Final.Root(); err != nil {
			return err
		}
	}
	if p.Interval == 0 { // by the rules of a new chain; another tells what fits
		p.Interval = min(segment, max(p.Steps, 1), job.DefaultParams.Segment(p.StepFLOPs, dispute.DefaultRules))
		d.Spec.Problem.Interval = p.Interval
	}
	d.Terms = d.Spec.Terms()
	if err := d.addFiles(from, in.Data); err != nil {
		return err
	}
	if err := d.Unsigned().Check(); err != nil {
		return err
	}
	return d.try(ctx)
}

// teach has the model learn from the teacher that the spec names, or that it has already.
func (d *Draft) teach(from *Origin, in *replay.Inputs) (err error) {
	p := &d.Spec.Problem
	if p.Teacher != "" {
		from.Model, from.Teacher, err = teacher.Join(teacher.Student{Graph: in.Model, Output: in.Recipe.Output, Own: from.Own}, func(shapes map[string]tensor.Shape) (*graph.Graph, error) {
			return models.Read(d.Spec.Folders, p.Teacher, onnx.Options{Shapes: shapes})
		})
		if err != nil {
			return fmt.Errorf("problem.teacher %s, an ONNX file of a model for the inputs and classes of problem.model: %w", p.Teacher, err)
		}
	}
	if err := p.Loss.Check(in.Recipe.Loss, from.Teacher != ""); err != nil || from.Teacher == "" {
		return err
	}
	in.Model, in.Recipe.Teacher, in.Recipe.Weight = from.Model, from.Teacher, p.Loss.TeacherWeight()
	if d.Teacher, err = teacher.CostOf(in.Model, from.Teacher, in.Recipe.Batch, in.Recipe.Profile); in.Recipe.Weight == 0 {
		d.Teacher.FLOPs = 0 // no step computes it
	}
	return err
}

// Unsigned returns the order of the draft as far as nobody is a party of it yet: no
// chain would take it, whoever signs, if it does not pass its check.
func (d *Draft) Unsigned() *job.Order {
	o := &job.Order{Contact: job.Contact{Key: make([]byte, ed25519.PublicKeySize)}, Problem: d.Problem, Conditions: d.Terms, Project: d.Project}
	o.Problem.Files = nil
	for _, f := range d.Files {
		o.Problem.Files = append(o.Problem.Files, blobs.File(f.Role, f.ref()))
	}
	return o
}

// Suits returns an error that shows the inequality if a chain of such rules would refuse
// the order, or lease it to nobody.
func (d *Draft) Suits(p *job.Params, games dispute.Rules) error {
	o := d.Unsigned()
	if err := p.Suits(o); err != nil {
		return err
	}
	return p.Replayable(o, games)
}

// Memory returns the bytes by which those who work on the order judge whether it takes
// more than they have: of all values of its largest program.
func (d *Draft) Memory() uint64 {
	if d.Job.Merge.Program == nil {
		return engine.Memory(d.Job.Step.Program)
	}
	return max(engine.Memory(d.Job.Step.Program), engine.Memory(d.Job.Merge.Program))
}

func (d *Draft) addFiles(from Origin, data *tensor.Tensor) error {
	b, err := models.Write(from.Model)
	if err != nil {
		return err
	}
	d.Files = []DraftFile{
		file(replay.RoleModel, b), fileOf(replay.RoleData, data), fileOf(replay.RoleHeldOut, d.HeldOut),
	}
	if replay.InParts(data.Shape) {
		d.Files = append(d.Files, file(replay.RoleCrown, canon.Marshal(d.Job.Crown)))
	}
	if d.TokenizerFile != nil {
		d.Files = append(d.Files, file(replay.RoleTokenizer, d.TokenizerFile))
	}
	if d.Schema != nil {
		b, err := d.Schema.Encoded()
		if err != nil {
			return err
		}
		d.Files = append(d.Files, file(replay.RoleSchema, b))
	}
	if p := from.Parent; p != nil {
		d.Files = append(d.Files, file(replay.RoleParent, canon.Marshal(p.Order)), file(replay.RoleStart, p.Final.Parts()...))
	}
	return nil
}

// try runs the first step and refuses one that ends in what is no number.
func (d *Draft) try(ctx context.Context) error {
	u := d.Job.UnitOf(&d.Problem, 0)
	s, err := u.Play(ctx, d.Job.Start, 0, 1, nil)
	if err != nil {
		return err
	}
	d.Loss = replay.LossOf(s)
	if !replay.Finite(d.Loss) {
		return fmt.Errorf("the first step's loss is %v: lower the learning rate, or check the model's initial weights", d.Loss)
	}
	if what := d.Job.NotFinite(s); what != "" {
		return fmt.Errorf("after the first step %s is not a finite number: lower problem.optimizer.learningRate", what)
	}
	return nil
}
