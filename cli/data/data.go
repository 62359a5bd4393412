// Package data is the verbs about data to train on. Call [Command] for tally data, and [NewOrder] for tally
// order new. [Begin] is what that does with a table or images, and [ExampleOrder] what it writes for a text.
//
// Invariants: those of package cli.
package data

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/format/delimited"
	"github.com/tally-network/tally/format/images"
	"github.com/tally-network/tally/format/source"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/internal/scratch"
	"github.com/tally-network/tally/node/consume/dataset"
)

// Show shows a result: as JSON, or as text.
type Show func(value any, text func(w io.Writer)) error

// Command returns the verb, which holds the others. home is where the user's keys are.
func Command(show Show, home *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "data", GroupID: "models", Short: "Look at data before a model is trained on it, and share it",
		Example: "  tally data inspect examples/search/iris.csv",
	}
	cmd.AddCommand(inspect(show), share(show, home))
	return cmd
}

// report is what tally data inspect tells.
type report struct {
	Records int             `json:"records"`
	Columns []table.Summary `json:"columns"`
	Sheet   string          `json:"sheet,omitempty"` // a file
}

// settings are the flags of inspect.
type settings struct {
	kinds         map[string]string
	missing       []string
	separator     string
	header        string
	height, width int
	crop          bool
	sheet         string
}

func inspect(show Show) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "inspect SOURCE…", Short: "Tell the columns of a file, of several, or of a folder of images",
		Long: `Reads data as training does, and tells of each column what it holds: its kind, how many
records have a value, how many values differ, the least, mean and greatest, or the most
frequent. What is found out of text by rules can be said instead.

A source is a file that ends in .csv, .tsv, .jsonl, .parquet, .npy, .npz or .safetensors, one of MNIST's,
or a folder with another for each class and PNG or JPEG images in them. A folder of files, or a
pattern such as 'data/*.parquet', is one table. Several sources are columns of the same records.
https://HOST/FILE, hf:OWNER/NAME, s3://BUCKET/KEY, ipfs:CID and tally:CID, which a peer shares, are fetched,
and kept for the next time.`,
		Example: `  tally data inspect examples/search/iris.csv
  tally data inspect table.csv --kind zip=category --missing '?'
  tally data inspect pets/ --height 64 --width 64 --crop --sheet pets.png
  tally data inspect hf:scikit-learn/iris
  tally data inspect train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for i := range args {
				o := dataset.Options{Source: args[i]}
				if _, _, err := o.Fetch(cmd.Context(), args[i:i+1], Progress(cmd.ErrOrStderr())); err != nil {
					return err
				}
				args[i] = o.Source
			}
			t, err := s.open(args)
			if err != nil {
				return err
			}
			defer runtime.KeepAlive(t) // its memory may not be Go's
			r := report{Records: t.Records, Columns: t.Describe(), Sheet: s.sheet}
			if s.sheet != "" {
				if err := writeSheet(s.sheet, t); err != nil {
					return err
				}
			}
			return show(r, func(w io.Writer) { tell(w, r) })
		},
	}
	f := cmd.Flags()
	f.StringToStringVar(&s.kinds, "kind", nil, "kind of a column, as in label=category: integer, real, boolean, category, text, array, image, json")
	f.StringArrayVar(&s.missing, "missing", nil, "word of text that stands for no value, beside the usual")
	f.StringVar(&s.separator, "separator", "", "of text: comma, semicolon or tab (default: found out)")
	f.StringVar(&s.header, "header", "", "whether the first record of text names the columns: yes or no (default: found out)")
	f.Var(numbers.Within(&s.height, 0, images.MaxExtent), "height", "pixels to which images are resized (default: as they are)")
	f.Var(numbers.Within(&s.width, 0, images.MaxExtent), "width", "pixels to which images are resized")
	f.BoolVar(&s.crop, "crop", false, "crop images to the centre, rather than stretch them")
	f.StringVar(&s.sheet, "sheet", "", "PNG file to write, with some images of each class in a row")
	return cmd
}

// open reads the sources.
func (s *settings) open(names []string) (*table.Table, error) {
	o := source.Options{Missing: s.missing, Allocator: scratch.Allocator(""), Images: images.Options{Height: s.height, Width: s.width}}
	if s.crop {
		o.Images.Fit = images.CropCenter
	}
	separators := map[string]byte{"": 0, "comma": ',', "semicolon": ';', "tab": '\t', ",": ',', ";": ';'}
	headers := map[string]delimited.Header{"": delimited.Guessed, "yes": delimited.Names, "no": delimited.Values}
	var ok bool
	if o.Separator, ok = separators[s.separator]; !ok {
		return nil, fmt.Errorf("--separator %q: take comma, semicolon or tab", s.separator)
	}
	if o.Header, ok = headers[s.header]; !ok {
		return nil, fmt.Errorf("--header %q: take yes or no", s.header)
	}
	o.Kinds = map[string]table.Kind{}
	for _, column := range slices.Sorted(maps.Keys(s.kinds)) {
		kind, err := table.ParseKind(s.kinds[column])
		if err != nil {
			return nil, fmt.Errorf("--kind: %w", err)
		}
		o.Kinds[column] = kind
	}
	if len(names) > 1 && len(o.Kinds) > 0 {
		return nil, errors.New("--kind is for one source: inspect them one by one")
	}
	var all []*table.Table
	for _, name := range names {
		t, err := source.Open(name, o)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return table.Join(all...)
}

// tell writes a report for people.
func tell(w io.Writer, r report) {
	fmt.Fprintf(w, "%d records\n\n", r.Records)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "COLUMN\tKIND\tMISSING\tDISTINCT\tVALUES")
	for _, c := range r.Columns {
		kind, distinct := c.Kind, "–"
		if c.Shape != nil {
			kind += fmt.Sprintf(" %s%v", c.Type, c.Shape)
		}
		if c.Distinct > 0 {
			distinct = strconv.Itoa(c.Distinct)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", printable(c.Name), kind, c.Missing, distinct, values(c))
	}
	t.Flush()
	if r.Sheet != "" {
		fmt.Fprintf(w, "\nSome images of each class are in %s.\n", r.Sheet)
	}
}

// values tells the values of a column in a few words.
func values(c table.Summary) string {
	switch {
	case c.Least != nil && c.Mean != nil && c.Greatest != nil:
		return fmt.Sprintf("%.6g to %.6g, mean %.6g", *c.Least, *c.Greatest, *c.Mean)
	case c.Kind == table.Category.String() || c.Kind == table.Boolean.String():
		var all []string
		for _, f := range c.Frequencies[:min(len(c.Frequencies), 5)] {
			all = append(all, fmt.Sprintf("%s %d", printable(f.Value), f.Count))
		}
		if c.Distinct > len(all) {
			all = append(all, "…")
		}
		return strings.Join(all, ", ")
	}
	var all []string
	for _, s := range c.Samples[:min(len(c.Samples), 2)] {
		all = append(all, printable(s))
	}
	return strings.Join(all, ", ")
}

// printable returns a text of a stranger so that it changes nothing on a terminal.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` || s == "" {
		return q
	}
	return s
}
