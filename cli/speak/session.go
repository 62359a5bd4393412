package speak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/library"
	"github.com/tally-network/tally/node/hire"
	"github.com/tally-network/tally/node/tabs"
)

// sessionRow is a session as tally session ls prints it.
type sessionRow struct {
	Session  string `json:"session"`
	With     string `json:"with"` // account of the other side
	Model    string `json:"model"`
	Escrow   uint64 `json:"escrow_utally"`
	Paid     uint64 `json:"paid_utally"`
	Spent    uint64 `json:"spent_utally"`
	Receipts uint64 `json:"receipts"`
	Pending  int    `json:"unsettled"`
	End      string `json:"end"`
}

func (e *Env) session() *cobra.Command {
	cmd := &cobra.Command{
		Use: "session", GroupID: "models", Short: "Sessions with providers of language models, and their receipts",
		Long:    "Shows the sessions of a home with providers of language models, or of a provider with consumers, settles them, checks receipts of replies, and disputes wrong ones.",
		Example: "  tally session ls --home consumer\n  tally session verify 3f2a… --home consumer\n  tally session challenge 3f2a… --home consumer",
	}
	var open OpenConsumer
	end := &cobra.Command{
		Use: "end SESSION", Short: "Settle a session: what was paid ahead and not served comes back",
		Long:    "Settles a session by the will of both sides, while no gateway of this home runs. If the provider does not answer, the session ends by its time.",
		Example: "  tally session end 3f2a9c --home consumer\n  tally session end 3f2a9c --home consumer --rpc http://203.0.113.7:26657 --grpc 203.0.113.7:9090",
		Args:    cobra.MatchAll(named("SESSION"), cobra.MaximumNArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.endSession(cmd.Context(), open, args[0]) },
	}
	open = e.Consumer(end.Flags())
	cmd.AddCommand(&cobra.Command{
		Use: "ls", Short: "List the sessions of a home",
		Long:    "Lists the sessions of a home, those that end first first. A gateway or a provider may run meanwhile.",
		Example: "  tally session ls --home consumer --json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return e.listSessions() },
	}, end, e.verifyReceipt(), e.challengeReceipt())
	return cmd
}

// allTabs reads the tabs of a home, of either side.
func (e *Env) allTabs() ([]*tabs.Tab, error) {
	var all []*tabs.Tab
	for _, dir := range []string{filepath.Join(*e.Home, "sessions", "tabs"), filepath.Join(*e.Home, "sessions")} {
		some, err := tabs.Read(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (e *Env) listSessions() error {
	all, err := e.allTabs()
	if err != nil {
		return err
	}
	rows := []sessionRow{}
	for _, t := range all {
		terms, s := t.Terms(), t.State()
		with := terms.Provider.Account
		if len(t.TermsSignature()) == 0 { // the provider's own tab has none
			with = terms.Consumer.Account
		}
		rows = append(rows, sessionRow{
			t.ID().String(), with, terms.Model.String(), s.Escrow, s.Paid, s.Spent, s.Served, s.Pending, time.UnixMilli(terms.End).UTC().Format(time.RFC3339),
		})
	}
	return e.Show(rows, func(w io.Writer) {
		if len(rows) == 0 {
			fmt.Fprintln(w, "no sessions: tally gateway --network opens them, and tally serve has them with others")
			return
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "SESSION\tWITH\tMODEL\tSPENT\tPAID\tESCROW\tRECEIPTS\tENDS")
		for _, r := range rows {
			fmt.Fprintf(t, "%.16s\t%s\t%.16s\t%d\t%d\t%d\t%d\t%s\n", r.Session, r.With, r.Model, r.Spent, r.Paid, r.Escrow, r.Receipts, r.End)
		}
		t.Flush()
	})
}

func (e *Env) endSession(ctx context.Context, open OpenConsumer, begin string) error {
	threads := 1
	b := &buying{Env: e, open: open, check: "none", threads: &threads}
	n, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer n.close()
	var found []canon.Hash
	for _, t := range n.consumer.Sessions() {
		if len(begin) >= 4 && strings.HasPrefix(t.ID().String(), begin) {
			found = append(found, t.ID())
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("%d sessions begin with %.64s: tally session ls lists them (give at least 4 digits)", len(found), begin)
	}
	if err := n.consumer.Finish(ctx, found[0]); err != nil {
		return err
	}
	return e.Show(map[string]string{"settled": found[0].String()}, func(w io.Writer) { fmt.Fprintf(w, "session %s is settled\n", found[0]) })
}

// Verified is what tally session verify prints.
type Verified struct {
	Receipt  string  `json:"receipt"`
	Provider string  `json:"provider"`
	Model    string  `json:"model"`
	Tokens   int     `json:"tokens"`
	Right    bool    `json:"right"`
	Wrong    int     `json:"wrong"` // the first token that is wrong; −1: none
	Pages    bool    `json:"pages"` // the provider has signed for what it computed
	Seconds  float64 `json:"seconds"`
}

// errWrong says that a reply is not what its request gives.
type errWrong struct{ Verified }

// Error implements error.
func (e errWrong) Error() string {
	if e.Wrong >= 0 {
		return fmt.Sprintf("the reply is wrong from its token %d on, and %s has signed it", e.Wrong, e.Provider)
	}
	return fmt.Sprintf("the tokens are right, but %s has signed for something else that it computed", e.Provider)
}

func (e *Env) verifyReceipt() *cobra.Command {
	var at receiptModel
	cmd := &cobra.Command{
		Use: "verify RECEIPT", Short: "Re-execute a reply whose receipt one has",
		Long: `Checks what a provider has signed, and re-executes the reply with the model on this machine. RECEIPT
is a file, or the id of one that a gateway of --home has kept.`,
		Example: "  tally session verify 3f2a… --home consumer\n  tally session verify receipt.json --model smollm2.gguf",
		Args:    cobra.MatchAll(named("RECEIPT"), cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.reExecute(cmd.Context(), args[0], at)
		},
	}
	at.flags(cmd)
	return cmd
}

// receiptModel says where the model of a receipt is.
type receiptModel struct {
	model, adapter string
	threads        int
}

func (m *receiptModel) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.model, "model", "", "the model: a name, a GGUF file or a folder (default: the one that was pulled and has the receipt's root)")
	adapterFlag(cmd, &m.adapter)
	threads(cmd, &m.threads)
}

// open opens the model that has a root.
func (m *receiptModel) open(e *Env, root canon.Hash) (*files.Files, *files.Manifest, error) {
	if m.adapter != "" && m.model == "" {
		return nil, nil, errors.New("--adapter without --model: name the base as well")
	}
	at, err := e.modelOf(root, m.model, m.threads)
	if err != nil {
		return nil, nil, err
	}
	f, err := openAdapted(at.path, m.adapter)
	if err != nil {
		return nil, nil, err
	}
	if m.threads = cmp.Or(m.threads, runtime.GOMAXPROCS(0)); m.adapter != "" {
		at.entry = nil // the manifest that is known is that of the base
	}
	manifest, err := at.manifest(f, m.threads)
	if err == nil && manifest.Root() != root {
		err = fmt.Errorf("%s is model %s, the receipt is of %s", at.path, manifest.Root(), root)
	}
	return f, manifest, err
}

func (e *Env) reExecute(ctx context.Context, name string, at receiptModel) error {
	x, err := e.openReceipt(name, at)
	if err != nil {
		return err
	}
	out, err := x.reExecute(ctx)
	if err != nil {
		return err
	}
	if !out.Right && !*e.JSON {
		return errWrong{out}
	}
	err = e.Show(out, func(w io.Writer) {
		fmt.Fprintf(w, "right: all %d tokens are what the request gives, and the provider has computed them (%.2f s)\n", out.Tokens, out.Seconds)
	})
	if !out.Right {
		err = errors.Join(err, errWrong{out})
	}
	return err
}

// receipt is one whose model is open.
type receipt struct {
	*hire.Receipt
	files    *files.Files
	manifest *files.Manifest
	threads  int
}

// openReceipt opens a receipt, which is a file or one that the home has kept, and its model.
func (e *Env) openReceipt(name string, at receiptModel) (*receipt, error) {
	file := name
	if _, err := canon.ParseHash(name); err == nil {
		file = hire.ReceiptPath(filepath.Join(*e.Home, "sessions"), name)
	}
	r, err := hire.ReadReceipt(file)
	if err != nil {
		return nil, err
	}
	if err := r.Verify(); err != nil {
		return nil, err
	}
	f, m, err := at.open(e, r.Terms.Model)
	if err != nil {
		return nil, err
	}
	return &receipt{r, f, m, at.threads}, nil
}

func (r *receipt) reExecute(ctx context.Context) (Verified, error) {
	begun := time.Now()
	v, err := check.New(r.files.Weights, executor(r.threads)).Check(ctx, &r.Request, r.Reply)
	if err != nil {
		return Verified{}, err
	}
	out := Verified{
		Receipt: r.Receipt.Receipt.ID().String(), Provider: r.Terms.Provider.Account, Model: r.Terms.Model.String(), Tokens: len(r.Reply), Wrong: v.Wrong,
		Pages: v.Wrong < 0 && dispute.SaltedPages(v.Pages, r.Terms.Provider.Key) == r.Receipt.Receipt.Pages, Seconds: time.Since(begun).Seconds(),
	}
	out.Right = out.Wrong < 0 && out.Pages
	return out, nil
}

// modelOf returns where a model lies: as it is named, or by its root among those that were pulled.
func (e *Env) modelOf(root canon.Hash, named string, threads int) (located, error) {
	if named != "" {
		return find(named)
	}
	l, err := library.Open(folder())
	if err != nil {
		return located{}, err
	}
	known, broken := rootsOf(l, threads)
	for name, of := range known.names { // any will do
		if of == root {
			return find(name)
		}
	}
	return located{}, errors.Join(fmt.Errorf("model %s is not on this machine: name it by --model, or fetch it by tally pull", root), broken)
}
