package dataset

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
)

// Proposal is a model and a loss for data, and why these.
type Proposal struct {
	Architecture string            `json:"architecture"`
	Settings     map[string]string `json:"settings"`
	Loss         string            `json:"loss"`
	Data         Options           `json:"data"`
	Batch        int               `json:"batch"`
	Steps        int               `json:"steps"` // of a unit
	Reasons      []string          `json:"reasons"`
	Template     string            `json:"-"` // of chats, to be written beside the order; "": none is needed

	images bool // are what it learns from
}

// How often training goes through the data, and how it is cut.
const (
	proposedEpochs = 16
	proposedRounds = 8
	proposedShards = 2
)

// mostClasses is the most distinct whole numbers that are taken for classes; of more, the target is a quantity.
const mostClasses = 64

// Propose finds a model of package zoo for a table. The encoder is nil if there is none. Columns that look like ids are ignored, but
// for those that are kept.
func (o *Options) Propose(t *table.Table, e *Encoder, keep ...string) (*Proposal, error) {
	p, err := o.propose(t, e, keep)
	if err != nil {
		return nil, fmt.Errorf("data %s: %w", o.Source, err)
	}
	return p, nil
}

func (o *Options) propose(t *table.Table, e *Encoder, keep []string) (*Proposal, error) {
	for _, name := range append(slices.Clone(o.Ignore), keep...) {
		if _, err := t.Column(name); err != nil {
			return nil, err
		}
	}
	m := o.newMaker(t, &graph.Graph{}, Objective{})
	if m.encoder = e; m.tellsTexts() {
		return m.proposeLanguage()
	}
	target, err := m.target()
	if err != nil {
		return nil, err
	}
	p := &Proposal{Settings: map[string]string{}, Data: *o, Loss: m.out.Objective.Name}
	p.Batch = max(1, min(32, t.Records/8))
	classes := len(target.Categories)
	if n := counted(target); n > 0 {
		classes, p.Loss = n, ofClasses[0]
	}
	if p.Loss == ofClasses[0] && classes == 0 { // truths
		classes = 2
	}
	switch {
	case p.Loss == ofClasses[0]:
		p.because("%q has %d classes: %s tells them apart", target.Name, classes, p.Loss)
		if o.HeldOut == (HeldOut{}) {
			p.Data.HeldOut = HeldOut{Share: 0.2, Stratify: true}
		}
	default:
		p.because("%q is a number: %s", target.Name, p.Loss)
		if o.HeldOut == (HeldOut{}) {
			p.Data.HeldOut = HeldOut{Share: 0.2}
		}
	}
	p.Steps = max(16, min(64, proposedEpochs*t.Records/(p.Batch*proposedRounds*proposedShards)))
	p.set("batch", p.Batch)
	if p.set("classes", classes); classes == 0 {
		p.set("outputs", max(1, target.Shape().Elements()))
	}
	p.ignoreIDs(m, keep)
	if err := p.reads(m, target); err != nil {
		return nil, err
	}
	for _, name := range keep {
		if slices.Contains(p.Data.Ignore, name) {
			return nil, fmt.Errorf("column %q is text of many values, which no proposed model reads: make numbers of it, or of few values a category by data.kinds in an order", name)
		}
	}
	return p, nil
}

// ignoreIDs leaves out columns that tell each record apart from all others, unless they are kept or nothing else is left.
func (p *Proposal) ignoreIDs(m *maker, keep []string) {
	all := m.left()
	for _, c := range all {
		if !isIndex(c) || slices.Contains(keep, c.Name) {
			continue
		}
		m.used[c.Name] = true
		p.Data.Ignore = append(p.Data.Ignore, c.Name)
		p.because("%q is the index of a table of pandas: it is ignored; tally order new --keep %q has it learnt from", c.Name, c.Name)
	}
	all = m.left()
	ids := slices.DeleteFunc(slices.Clone(all), func(c *table.Column) bool { return !isID(c) || slices.Contains(keep, c.Name) })
	if len(ids) == len(all) {
		return
	}
	for _, c := range ids {
		m.used[c.Name] = true
		p.Data.Ignore = append(p.Data.Ignore, c.Name)
		p.because("%q tells each record apart from all others, as an id does: it is ignored; tally order new --keep %q has it learnt from", c.Name, c.Name)
	}
}

// isIndex reports whether pandas has written a column beside those of its user.
func isIndex(c *table.Column) bool {
	return c.Name == "Unnamed: 0" || strings.HasPrefix(c.Name, "__index_level_")
}

// leastIDs is the fewest records of which numbers in a row are taken for ids: of fewer it happens by chance.
const leastIDs = 10

// isID reports whether a column obviously says nothing but which record it is: all whole numbers from 0 or 1 on, each once, or a text that is
// never twice the same.
func isID(c *table.Column) bool {
	n := c.Len()
	if n < leastIDs || c.CountMissing() > 0 {
		return false
	}
	if c.Kind == table.Category {
		return len(c.Categories) == n
	}
	if c.Kind != table.Integer {
		return false
	}
	seen, least := make([]bool, n+1), int64(1)
	for i := range n {
		v := int64(c.Values.At(i))
		if v < 0 || v > int64(n) || seen[v] {
			return false
		}
		seen[v], least = true, min(least, v)
	}
	return least == 1 || !seen[n]
}

// counted returns how many classes a column of whole numbers counts from 0 on, 0 if it does not.
func counted(c *table.Column) int {
	if !numbered(c) {
		return 0
	}
	seen := map[tensor.Word]bool{}
	var most tensor.Word
	for i := range c.Len() {
		v := c.Values.At(i)
		seen[v], most = true, max(most, v)
	}
	if len(seen) != int(most)+1 || len(seen) > mostClasses || len(seen) < 2 {
		return 0
	}
	return len(seen)
}

func (p *Proposal) because(format string, a ...any) {
	p.Reasons = append(p.Reasons, fmt.Sprintf(format, a...))
}

func (p *Proposal) set(name string, v int) { p.Settings[name] = fmt.Sprint(v) }

// reads chooses the architecture by what is left of the table.
func (p *Proposal) reads(m *maker, target *table.Column) error {
	x := &matrix{records: m.table.Records}
	missing := 0
	for _, c := range m.left() {
		switch {
		case c.Kind == table.Image:
			p.chooseForImages(c)
			return nil
		case c.Kind == table.Text || c.Kind == table.Category && len(c.Categories) > mostClasses:
			p.Data.Ignore = append(p.Data.Ignore, c.Name)
			p.because("%q is text of many values: it is ignored", c.Name)
			continue
		}
		missing += c.CountMissing()
		if c.Kind == table.Array {
			p.Architecture = "mlp"
			p.set("inputs", c.Shape().Elements())
			p.because("%q has %d numbers in each record: mlp", c.Name, c.Shape().Elements())
			return nil
		}
		if c.Kind != table.Category && missing > 0 {
			c = &table.Column{Name: c.Name, Kind: c.Kind, Values: c.Values} // its values are not read here
		}
		if err := x.add(c, ""); err != nil {
			return err
		}
	}
	if x.width() == 0 {
		return fmt.Errorf("no column but %q is left to learn from", target.Name)
	}
	if missing > 0 && p.Data.Missing == "" {
		p.Data.Missing = string(table.Median)
		p.because("%d values are missing: they become the median, or the most frequent text", missing)
	}
	p.Architecture = "mlp"
	p.set("inputs", x.width())
	p.set("width", max(16, min(256, m.table.Records/16)))
	p.because("the features are %d numbers, %s: mlp", x.width(), x.listed())
	return nil
}

// chooseForImages chooses a model of images.
func (p *Proposal) chooseForImages(c *table.Column) {
	p.images = true
	s := c.Shape()
	p.Architecture = "resnet"
	if s[0] <= 32 && s[1] <= 32 {
		p.Architecture = "lenet"
	}
	size := max(s[0], s[1])
	if s[0] != s[1] {
		p.Data.Size, p.Data.Crop = [2]int{size, size}, false
		p.because("they are made square")
	}
	p.set("size", size)
	p.set("channels", s[2])
	p.because("the images have %d × %d pixels, channels %d: %s", s[0], s[1], s[2], p.Architecture)
}

// Order returns an order file for a model that lies beside it.
func (p *Proposal) Order(name, model string) string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	line("# tally train --help lists everything that an order may say.")
	for _, reason := range p.Reasons {
		line("# %s", reason)
	}
	d := &p.Data
	line("kind: TrainingOrder\nname: %q\nproblem:\n  model: %q\n  data:\n    source: %q", name, model, filepath.ToSlash(d.Source))
	if d.Target != "" {
		line("    target: %q", d.Target)
	}
	if x := &d.Text; *x != (Texts{}) {
		template := ""
		if x.Template != "" {
			template = fmt.Sprintf(", template: %q", filepath.ToSlash(x.Template))
		}
		line("    text: {tokenizer: %q%s, long: %s, pack: %v}", filepath.ToSlash(x.Tokenizer), template, x.Long, x.Pack)
	}
	if len(d.Ignore) > 0 {
		var quoted []string
		for _, c := range d.Ignore {
			quoted = append(quoted, fmt.Sprintf("%q", c))
		}
		line("    ignore: [%s]", strings.Join(quoted, ", "))
	}
	if d.Size != [2]int{} {
		line("    size: [%d, %d]", d.Size[0], d.Size[1])
	}
	if p.images {
		line("    # augment: [{shift: 2}, {flip: 0.5}]   # if images that are moved, or seen in a mirror, mean the same")
	}
	if d.Missing != "" {
		line("    missing: %s", d.Missing)
	}
	stratify := ""
	if d.HeldOut.Stratify {
		stratify = ", stratify: true"
	}
	line("    heldOut: {share: %v%s}", d.HeldOut.Share, stratify)
	line("  loss: %s\n  optimizer: {name: adamw, learningRate: 0.003, warmup: 10, weightDecay: 0.01}", p.Loss)
	line("  rounds: %d\n  shards: %d\n  steps: %d\n  batch: %d\n  seed: 1", proposedRounds, proposedShards, p.Steps, p.Batch)
	line("conditions:\n  maxPrice: 5tally\n  providers: 2\n  assurance: {audit: {auditors: 1, segments: 1}}\n  unitWindow: 1m         # of a devnet 10s will do\n  window: 10m            # and 20s")
	return b.String()
}
