package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/jsonlines"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/evidence"
)

// extracted is what tally order extract tells.
type extracted struct {
	Extract string `json:"extract"`
	Record  int    `json:"record"`
	Bytes   int64  `json:"bytes"`
}

func (e *env) orderExtract() *cobra.Command {
	var out string
	var record int
	var without bool
	cmd := &cobra.Command{
		Use: "extract BUNDLE", Short: "Take what proves one record out of a bundle",
		Long: `Writes a small file that proves, without the rest of the bundle, what a batch gave for
one record, counted from 0. tally verify checks it as it checks a bundle, and prints
the record's values; it executes nothing, for the file holds no model. Each part of an order
that was split counts its records from 0.

The file shows the record in the tiles that it lies in, and so up to 31 records
before and after it, too. --without-inputs leaves all inputs out.`,
		Example: "  tally order extract order-3f09/proof.bundle --record 17 --out record-17.proof\n  tally verify record-17.proof --trust 5B1F… --json",
		Args:    arguments("extract BUNDLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("record") {
				return errors.New("--record is missing: name the record to prove, counted from 0")
			}
			file, size, err := bounded.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			t := extracted{Extract: cmp.Or(out, fmt.Sprintf("record-%d.proof", record)), Record: record}
			ctx := cmd.Context()
			if t.Bytes, err = interrupt.Run(ctx, func() (int64, error) {
				return evidence.Extract(ctx, file, size, record, !without, t.Extract)
			}); err != nil {
				return err
			}
			return e.show(t, func(w io.Writer) {
				fmt.Fprintf(w, "%s proves record %d, in %d bytes. Anybody can check it:\n  tally verify %[1]s --trust HASH\n", t.Extract, t.Record, t.Bytes)
			})
		},
	}
	f := cmd.Flags()
	f.Var(numbers.Within(&record, 0, tensor.MaxDim), "record", "the record to prove, counted from 0")
	f.StringVar(&out, "out", "", "file for the proof (default record-N.proof)")
	f.BoolVar(&without, "without-inputs", false, "show what the record got, and not what it was")
	return cmd
}

// provedRecord is what tally verify tells of an extract.
type provedRecord struct {
	Extract   string            `json:"extract"`
	Order     string            `json:"order"`
	Chain     string            `json:"chain"`
	Anchored  bool              `json:"anchored"`   // as of a bundle
	Trust     string            `json:"trust_root"` // as of a bundle
	TrustFrom string            `json:"trust_from,omitempty"`
	Block     int64             `json:"anchor_block"` // as of a bundle
	Verified  bool              `json:"verified"`
	Program   string            `json:"program_root"`
	Start     string            `json:"start_root"` // of all records
	FinalRoot string            `json:"final_root"` // of all results
	Record    int               `json:"record"`
	Records   int               `json:"records"`
	Inputs    map[string]values `json:"inputs,omitempty"`
	Outputs   map[string]values `json:"outputs"`
}

// values are a tensor as people and programs read it.
type values struct {
	Type   string `json:"type"`
	Shape  []int  `json:"shape"`
	Values list   `json:"values"`
}

// list is the elements of a tensor, as nested lists.
type list struct{ *tensor.Tensor }

// MarshalJSON implements json.Marshaler.
func (l list) MarshalJSON() ([]byte, error) { return jsonlines.Append(nil, l.Tensor, l.Shape, 0), nil }

func valuesOf(s *graph.State) map[string]values {
	if s == nil {
		return nil
	}
	out := map[string]values{}
	for i, slot := range s.Slots {
		out[slot.Name] = values{slot.Type.String(), append([]int{}, slot.Shape...), list{s.Tensors[i]}}
	}
	return out
}

// record checks an extract, and tells of it.
func (v *verifier) record(ctx context.Context, file io.ReaderAt, size int64) error {
	if v.full || v.plausible || v.plots != "" {
		return errors.New("the file proves one record, and holds no model to execute again: give the whole bundle for --full and --plausibility")
	}
	r, err := interrupt.Run(ctx, func() (*evidence.Record, error) { return v.roots.CheckExtract(v.fresh, file, size) })
	if err != nil {
		return err
	}
	if r.By == "" {
		fmt.Fprintln(v.e.progress(), unanchored)
	}
	p := &r.Order.Problem
	t := provedRecord{
		Extract: v.name, Order: r.Order.ID().String(), Chain: r.Chain, Anchored: r.By != "", Trust: r.Signers.String(), TrustFrom: r.By, Block: r.Anchor.Height, Verified: r.By != "",
		Program: p.Step.String(), Start: p.Start.String(), FinalRoot: r.Final.String(), Record: r.Index, Records: p.Records,
		Inputs: valuesOf(r.Inputs), Outputs: valuesOf(r.Outputs),
	}
	if err := v.e.show(t, func(w io.Writer) { t.tell(w, r) }); err != nil || t.Anchored {
		return err
	}
	return errUnanchored
}

// mostShown bounds what people are shown of the elements of a tensor, in bytes of text.
const mostShown = 160

func (t *provedRecord) tell(w io.Writer, r *evidence.Record) {
	if t.Anchored {
		fmt.Fprintf(w, "%s shows that %s settled what record %d of %d got\n", t.Extract, t.Chain, t.Record, t.Records)
	} else {
		fmt.Fprintf(w, "%s is consistent about record %d of %d, and proves nothing\n", t.Extract, t.Record, t.Records)
	}
	for _, s := range []struct {
		what  string
		state *graph.State
	}{{"input", r.Inputs}, {"output", r.Outputs}} {
		if s.state == nil {
			fmt.Fprintln(w, "  inputs    not shown")
			continue
		}
		for i, slot := range s.state.Slots {
			x := s.state.Tensors[i]
			text := jsonlines.Append(nil, x, x.Shape, 0)
			if len(text) > mostShown {
				text = append(text[:mostShown], "…"...)
			}
			fmt.Fprintf(w, "  %-8s  %s %v%v %s\n", s.what, slot.Name, slot.Type, slot.Shape, text)
		}
	}
	fmt.Fprintf(w, "  order     %s, of program %s for records with root %s\n", t.Order, t.Program, t.Start)
	fmt.Fprintf(w, "  trust     validator set %s, from %s\n", t.Trust, cmp.Or(t.TrustFrom, "the file itself: not anchored"))
}
