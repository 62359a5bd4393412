package consume

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/format/yaml"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/node/consume/dataset"
	"github.com/tally-network/tally/node/consume/models"
	"github.com/tally-network/tally/node/consume/parts"
	"github.com/tally-network/tally/node/consume/remote"
)

// Spec is an order as a person writes it, in YAML.
type Spec struct {
	Kind       string         `json:"kind"`
	Name       string         `json:"name,omitempty"`
	Problem    SpecProblem    `json:"problem"`
	Conditions SpecConditions `json:"conditions"`

	Folders []string `json:"-"` // where its files may lie: who takes the order sees what they hold
	Trusted []string `json:"-"` // how sources on other machines begin that are asked for by the user's credentials

	Fetching func(name string, done, total int64) `json:"-"` // told how far data of other machines are; may be nil
}

// SpecProblem says what shall be trained on what, and how.
type SpecProblem struct {
	Model     string           `json:"model,omitempty"`     // ONNX file
	Continue  string           `json:"continue,omitempty"`  // in its place: proof bundle of an order whose training goes on
	Dims      map[string]int   `json:"dims,omitempty"`      // values of its symbolic dimensions
	Teacher   string           `json:"teacher,omitempty"`   // ONNX file of a model whose outputs are learnt beside the labels
	Text      string           `json:"text,omitempty"`      // training text; its last tenth is held out
	Tokenizer string           `json:"tokenizer,omitempty"` // tokenizer.json for the text; else each character is a token
	Data      *dataset.Options `json:"data,omitempty"`      // in its place: a table, or images
	Loss      dataset.Loss     `json:"loss"`
	Profile   lower.Profile    `json:"profile"` // of the arithmetic: fp32, mixed or int8
	Optimizer SpecOptimizer    `json:"optimizer"`
	Frozen    []string         `json:"frozen,omitempty"` // patterns of initializers that stay as they are
	Adapters  *SpecAdapters    `json:"adapters,omitempty"`
	Rounds    int              `json:"rounds"`
	Shards    int              `json:"shards"`     // units of a round
	Steps     int              `json:"steps"`      // of a unit
	Interval  int              `json:"checkpoint"` // steps between checkpoints; 0: eight, or as few as a dispute about them leaves time for
	Batch     int              `json:"batch"`
	Recompute int              `json:"recompute,omitempty"` // parts of the forward pass that are computed again, to save memory
	Seed      uint64           `json:"seed"`
	Best      SpecBest         `json:"best"`
}

// SpecBest says which round's model is delivered, by a score on held-out records, and when there are enough; without a metric it is the last one.
type SpecBest struct {
	Metric   string `json:"metric,omitempty"`
	Patience int    `json:"patience,omitempty"` // rounds without a better one, after which the order is ended; 0: it goes on
}

// language is the loss of a text, unless another is named.
const language = "next-token-cross-entropy"

// SpecOptimizer names an optimizer and its hyperparameters.
type SpecOptimizer struct {
	Name         string  `json:"name"`
	LearningRate float32 `json:"learningRate"`
	Warmup       int     `json:"warmup,omitempty"`   // steps
	Schedule     string  `json:"schedule,omitempty"` // constant, linear or cosine
	Decay        int     `json:"decay,omitempty"`    // steps over which the rate falls
	Final        float32 `json:"final,omitempty"`    // of the rate, in the end
	Momentum     float32 `json:"momentum,omitempty"`
	Nesterov     bool    `json:"nesterov,omitempty"`
	Beta1        float32 `json:"beta1,omitempty"`
	Beta2        float32 `json:"beta2,omitempty"`
	Epsilon      float32 `json:"epsilon,omitempty"`
	WeightDecay  float32 `json:"weightDecay,omitempty"`
	ClipNorm     float32 `json:"clipNorm,omitempty"`
	Accumulate   int     `json:"accumulate,omitempty"` // steps of one update
}

// SpecAdapters are trained in place of the matrices that they adapt.
type SpecAdapters struct {
	Rank  int      `json:"rank"`
	Alpha float32  `json:"alpha"`
	Of    []string `json:"of"` // patterns of initializers
}

// SpecConditions are the terms of the order.
type SpecConditions struct {
	MaxPrice    Amount        `json:"maxPrice"`
	Expires     Duration      `json:"expires"`
	Providers   int           `json:"providers"`
	Validator   string        `json:"validator,omitempty"`
	Split       parts.Wish    `json:"split,omitzero"` // a batch in so many orders, each under another validator
	Assurance   SpecAssurance `json:"assurance"`
	Custodians  int           `json:"custodians"`
	CodedBytes  uint64        `json:"codedBytes"` // of a unit's checkpoints, above which each custodian keeps a fragment of them; 0: each keeps all
	UnitTimeout Duration      `json:"unitTimeout"`
	UnitWindow  Duration      `json:"unitWindow"`
	Window      Duration      `json:"window"`
	Auction     bool          `json:"auction,omitempty"` // the next clearing, in place of a standing offer
	Bid         Amount        `json:"bid,omitempty"`     // at auctions with sealed bids; 0: maxPrice. It stays in the home until it is revealed
	Credit      bool          `json:"credit"`            // burn as much as it takes to credit providers with all that they compute
	Speculate   Depth         `json:"speculate"`         // rounds ahead of those whose windows are over
	SpecNeeds
}

// Kind is the kind of order that a Spec describes.
const Kind = "TrainingOrder"

// maxSpec bounds an order file in bytes.
const maxSpec = 64 << 10

// Default returns a spec with everything set that a person need not choose.
func Default() Spec {
	return Spec{
		Kind: Kind,
		Problem: SpecProblem{
			Optimizer: SpecOptimizer{Name: "adamw", LearningRate: 5e-3, Warmup: 10, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.01},
			Rounds:    8, Shards: 4, Steps: 16, Batch: 8, Seed: 1,
		},
		Conditions: SpecConditions{
			MaxPrice: 10_000_000, Expires: Duration(10 * time.Minute), Providers: 1, Custodians: 3, CodedBytes: 256 << 20,
			UnitTimeout: Duration(10 * time.Minute), UnitWindow: Duration(time.Minute), Window: Duration(10 * time.Minute), Speculate: AllRounds,
		},
	}
}

// ReadSpec reads an order file. Paths in it are relative to its folder. Its files lie
// there, or in folders that the caller allows: somebody else may have written it. Sources on other machines are asked for as nobody, but
// those that begin as an allowed one does.
func ReadSpec(name string, allow ...string) (Spec, error) {
	b, err := bounded.ReadFile(name, maxSpec)
	if err != nil {
		return Spec{}, err
	}
	s, err := ParseSpec(b)
	if err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	s.Trusted = slices.DeleteFunc(slices.Clone(allow), func(a string) bool { return !remote.Remote(a) })
	folder, folders, err := foldersOf(name, slices.DeleteFunc(slices.Clone(allow), remote.Remote))
	if err != nil {
		return s, err
	}
	s.Folders = folders
	paths := []*string{&s.Problem.Model, &s.Problem.Teacher, &s.Problem.Continue, &s.Problem.Text, &s.Problem.Tokenizer}
	if s.Problem.Data != nil {
		paths = append(paths, &s.Problem.Data.Source, &s.Problem.Data.Text.Tokenizer, &s.Problem.Data.Text.Template)
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) && !remote.Remote(*p) && *p != dataset.Bytes {
			*p = folder + *p
		}
	}
	return s, nil
}

// open opens the file of a field, and returns its size.
func (s *Spec) open(field, name string) (*os.File, int64, error) {
	return models.Open(s.Folders, field, name)
}

// ParseSpec reads an order from YAML. Fields that are not known are refused;
// fields that are not given have the values of Default.
func ParseSpec(b []byte) (Spec, error) {
	s := Default()
	s.Kind = ""
	if len(b) > maxSpec {
		return s, fmt.Errorf("an order has at most %d bytes", maxSpec)
	}
	if statedKind(b) == BatchKind {
		return s, fmt.Errorf("kind is %s: post it by tally batch", BatchKind)
	}
	if err := yaml.Decode(b, &s); err != nil {
		return s, err
	}
	switch {
	case s.Kind != Kind:
		return s, fmt.Errorf("kind is %q, write kind: %s, or kind: %s and tally batch", s.Kind, Kind, BatchKind)
	case s.Problem.Model == "" && s.Problem.Continue == "":
		return s, errors.New("problem.model is missing: name an ONNX file, or in problem.continue the proof bundle of an order")
	case s.Problem.Model != "" && s.Problem.Continue != "":
		return s, errors.New("problem.model and problem.continue: an order starts from one of them")
	case (s.Problem.Text == "") == (s.Problem.Data == nil):
		return s, errors.New("problem.text or problem.data: name a text file to train on, or a table or a folder of images")
	case s.Problem.Tokenizer != "" && s.Problem.Data != nil:
		return s, errors.New("problem.tokenizer is for problem.text: that of data is problem.data.text.tokenizer")
	case s.Problem.Tokenizer != "" && s.Problem.Continue != "":
		return s, errors.New("problem.continue goes on with the tokenizer of the earlier order: leave problem.tokenizer out")
	case s.Problem.Teacher != "" && s.Problem.Continue != "":
		return s, errors.New("problem.continue goes on with the teacher of the earlier order, or with none, and none can be added: leave problem.teacher out, or begin anew with problem.model")
	case s.Problem.Teacher != "" && s.Problem.Loss.TeacherWeight() == 0:
		return s, errors.New("problem.loss.weight is 0, so the teacher would teach nothing, and everybody would fetch it: leave problem.teacher and the weight out")
	case s.Conditions.Split.Parts() > 0:
		return s, errors.New("conditions.split: a batch alone is split, for its records do not need one another: leave it out")
	}
	if s.Problem.Data != nil {
		if err := s.Problem.Data.Check(); err != nil {
			return s, err
		}
	}
	if s.Problem.Continue == "" { // else it is known once the earlier order is read
		if err := s.Problem.Loss.Check(s.Problem.Loss.Name, s.Problem.Teacher != ""); err != nil {
			return s, err
		}
	}
	if err := train.Best(s.Problem.Best).Check(); err != nil {
		return s, fmt.Errorf("problem.best: %w", err)
	}
	return s, s.Conditions.check()
}

// statedKind returns the kind that an order file states, whatever else it says.
func statedKind(b []byte) string {
	for line := range strings.Lines(string(b)) {
		if kind, ok := strings.CutPrefix(line, "kind:"); ok {
			kind, _, _ = strings.Cut(kind, "#")
			return strings.Trim(strings.TrimSpace(kind), `"'`)
		}
	}
	return ""
}

// Source names what is trained on, for people to read.
func (p *SpecProblem) Source() string {
	if p.Data != nil {
		return fetch.RedactText(p.Data.Source)
	}
	return p.Text
}

// Recipe returns the hyperparameters.
func (s *Spec) Recipe() train.Recipe {
	o := &s.Problem.Optimizer
	r := train.Recipe{
		Loss: cmp.Or(s.Problem.Loss.Name, language), LossOptions: s.Problem.Loss.Objective().LossOptions, Optimizer: o.Name,
		Rate:     train.Rate{LearningRate: o.LearningRate, Warmup: o.Warmup, Schedule: o.Schedule, Decay: o.Decay, Final: o.Final},
		Momentum: o.Momentum, Nesterov: o.Nesterov, Beta1: o.Beta1, Beta2: o.Beta2, Epsilon: o.Epsilon,
		WeightDecay: o.WeightDecay, ClipNorm: o.ClipNorm, Passes: train.Passes{Accumulate: o.Accumulate, Recompute: s.Problem.Recompute}, Batch: s.Problem.Batch, Seed: s.Problem.Seed, Frozen: s.Problem.Frozen,
		Profile: s.Problem.Profile, Best: train.Best(s.Problem.Best),
	}
	if a := s.Problem.Adapters; a != nil {
		r.Adapters = train.Adapters{Rank: a.Rank, Alpha: a.Alpha, Of: a.Of}
	}
	return r
}

// Terms returns the conditions.
func (s *Spec) Terms() job.Conditions {
	p := job.Problem{Steps: s.Problem.Steps, Interval: max(s.Problem.Interval, 1)}
	return s.Conditions.terms(p.Segments())
}

// check returns an error for conditions that no chain would take, whatever the order.
func (c *SpecConditions) check() error {
	if c.Validator != "" {
		if _, err := address.Parse(c.Validator); err != nil {
			return fmt.Errorf("conditions.validator: %w: tally query market offers lists the validators that sell", err)
		}
	}
	if err := c.Split.Check(c.Validator, c.Auction, c.Assurance.Replicas); err != nil {
		return err
	}
	if c.Bid != 0 && (!c.Auction || c.Bid > c.MaxPrice) {
		return fmt.Errorf("conditions.bid: %v is what an order with auction: true bids in secret, and at most maxPrice, %v", c.Bid, c.MaxPrice)
	}
	if n, err := c.needs(); err != nil {
		return err
	} else if n.Deadline > 0 && c.Deadline < c.UnitTimeout {
		return fmt.Errorf("conditions.deadline: %v is less than unitTimeout, %v, for which one unit may take: lower that, too", time.Duration(c.Deadline), time.Duration(c.UnitTimeout))
	}
	return c.Assurance.check()
}

// terms returns the conditions for units of so many segments.
func (c *SpecConditions) terms(of int) job.Conditions {
	ms := func(d Duration) int64 { return time.Duration(d).Milliseconds() }
	t := job.Conditions{
		MaxPrice: uint64(c.MaxPrice), Expires: ms(c.Expires), MinProviders: c.Providers, Validator: c.Validator,
		Custodians: c.Custodians, CodedBytes: c.CodedBytes, UnitTimeout: ms(c.UnitTimeout), UnitWindow: ms(c.UnitWindow), Window: ms(c.Window),
		Speculate: int(c.Speculate), Credit: c.Credit, Auction: c.Auction,
	}
	t.Needs, _ = c.needs() // check has told what is wrong
	c.Assurance.enter(&t, of)
	return t
}

// Depth is a number of rounds, or all of an order, which is written all.
type Depth int

// AllRounds is the depth that no order goes beyond.
const AllRounds Depth = job.MaxUnits

// UnmarshalJSON implements json.Unmarshaler.
func (d *Depth) UnmarshalJSON(b []byte) error {
	if string(b) == `"all"` {
		*d = AllRounds
		return nil
	}
	n, err := strconv.ParseUint(string(b), 10, 31)
	if err != nil || n > uint64(AllRounds) {
		return fmt.Errorf("speculate: %s is no number of rounds: write 0, 1, 2 and so on up to %d, or all", b, int(AllRounds))
	}
	*d = Depth(n)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (d Depth) MarshalJSON() ([]byte, error) {
	if d >= AllRounds {
		return []byte(`"all"`), nil
	}
	return strconv.AppendInt(nil, int64(d), 10), nil
}

// Share is written like 5%.
type Share float64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Share) UnmarshalText(b []byte) error {
	digits, percent := strings.CutSuffix(string(b), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !percent || !(v >= 0 && v <= 100) {
		return fmt.Errorf("share %q: write it like 5%%, at most 100%%", b)
	}
	*s = Share(v / 100)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (s Share) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatFloat(100*float64(s), 'g', -1, 64) + "%"), nil
}

// Duration is written like 90s, 10m or 2h.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("duration %q: write it like 90s, 10m or 2h", b)
	}
	*d = Duration(v)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Amount is money in utally, written like 2.5tally or 2500000utally.
type Amount uint64

const perTally = 1_000_000

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Amount) UnmarshalText(b []byte) error {
	v, err := ParseAmount(string(b))
	if err != nil {
		return err
	}
	*a = v
	return nil
}

// UnmarshalJSON refuses a number: nobody can tell which unit is meant.
func (a *Amount) UnmarshalJSON(b []byte) error {
	text, err := strconv.Unquote(string(b))
	if err != nil {
		return fmt.Errorf("%s has no unit: write %[1]stally; a millionth of one is 1utally", b)
	}
	return a.UnmarshalText([]byte(text))
}

// MarshalText implements encoding.TextMarshaler.
func (a Amount) MarshalText() ([]byte, error) { return []byte(fmt.Sprintf("%dutally", uint64(a))), nil }

// ParseAmount reads an amount of money with its unit.
func ParseAmount(s string) (Amount, error) {
	bad := fmt.Errorf("amount %q: write it like 2.5tally or 2500000utally", s)
	if digits, ok := strings.CutSuffix(s, "utally"); ok {
		v, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
		if err != nil {
			return 0, bad
		}
		return Amount(v), nil
	}
	digits, ok := strings.CutSuffix(s, "tally")
	if !ok {
		return 0, bad
	}
	whole, part, _ := strings.Cut(strings.TrimSpace(digits), ".")
	if len(part) > 6 || whole == "" {
		return 0, bad
	}
	v, err := strconv.ParseUint(whole, 10, 64)
	f, errPart := strconv.ParseUint((part + "000000")[:6], 10, 64)
	if err != nil || errPart != nil || v > (math.MaxUint64-f)/perTally {
		return 0, bad
	}
	return Amount(v*perTally + f), nil
}

// String returns the amount in TALLY.
func (a Amount) String() string {
	s := fmt.Sprintf("%d.%06d", uint64(a)/perTally, uint64(a)%perTally)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + " TALLY"
}
