package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/cli/messages"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/desk"
	"github.com/tally-network/tally/node/partner"
)

func drill(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "drill", GroupID: "orders",
		Short: "Have work done that the network has voted for: projects, their tasks, results",
		Long: `Drilling is work of projects that the network has admitted. A project's partner publishes
tasks, which are batch orders that name it, and pays for them as for any order. Who
computes them gets power that counts as drilling.`,
		Example: "  tally drill project ls --endpoints tally-devnet/endpoints.json\n  tally drill prepare search examples/search/iris.csv --project 1 --out irises\n  tally drill publish irises/task.yaml --home tally-devnet/consumer\n  tally drill results 1 --home tally-devnet/consumer",
	}
	project := &cobra.Command{
		Use: "project", Short: "Propose, list, show, admit and end projects",
		Example: "  tally drill project ls --endpoints tally-devnet/endpoints.json",
	}
	for _, m := range messages.Projects {
		c := transaction(m)
		c.Annotations = map[string]string{sendsTx: "yes"}
		project.AddCommand(adopt(c, nil))
	}
	project.AddCommand((&reader{e: e}).projectLs(), (&reader{e: e}).projectShow())
	cmd.AddCommand(project, prepareTask(e), e.buyer().publishTask(), e.buyer().taskResults())
	return cmd
}

// projectRow is a project as tally drill project shows it. Work is in millionths of a ut.
type projectRow struct {
	Project uint64    `json:"project"`
	Name    string    `json:"name"`
	Status  string    `json:"status"`
	Partner string    `json:"partner"`
	Summary string    `json:"summary"`
	Contact string    `json:"contact"`
	Budget  uint64    `json:"budget_micro_ut"`
	Pending uint64    `json:"pending_micro_ut"` // that tasks in the market may come to
	Drilled uint64    `json:"drilled_micro_ut"`
	Deposit uint64    `json:"deposit_utally"`
	Tasks   uint64    `json:"tasks"` // ever published
	Orders  []taskRow `json:"orders,omitempty"`
}

// taskRow is a task that the chain still knows.
type taskRow struct {
	Task    uint64 `json:"task"`
	Order   string `json:"order"`
	Drilled uint64 `json:"drilled_micro_ut"`
}

func newProjectRow(p *drillingv1.Project) projectRow {
	return projectRow{
		Project: p.Number, Name: p.Name, Status: wire.NameOf(p.Status), Partner: p.Partner,
		Summary: p.Summary, Contact: p.Contact, Budget: p.Budget, Pending: p.Pending, Drilled: p.Drilled, Deposit: p.Deposit, Tasks: p.Tasks,
	}
}

func (r *reader) projectLs() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Short: "List projects, oldest first",
		Example: "  tally drill project ls --endpoints tally-devnet/endpoints.json", Args: arguments("ls"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := r.dial(cmd.Context()); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.close()) }()
			all, err := partner.Projects(cmd.Context(), r.role.Chain.Conn)
			if err != nil {
				return fmt.Errorf("projects: %w", err)
			}
			rows := []projectRow{}
			for i := range all {
				rows = append(rows, newProjectRow(&all[i]))
			}
			return r.e.show(rows, func(w io.Writer) {
				t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
				fmt.Fprintln(t, "PROJECT\tSTATUS\tTASKS\tDRILLED\tBUDGET\tNAME")
				for _, p := range rows {
					fmt.Fprintf(t, "%d\t%s\t%d\t%s\t%s\t%s\n", p.Project, p.Status, p.Tasks, wire.UtText(p.Drilled), wire.UtText(p.Budget), p.Name)
				}
				_ = t.Flush()
			})
		},
	}
	r.flags(cmd.Flags())
	return cmd
}

func (r *reader) projectShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show PROJECT", Short: "Show a project, and its tasks that the chain still knows",
		Example: "  tally drill project show 1 --endpoints tally-devnet/endpoints.json", Args: arguments("show PROJECT"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			n, err := messages.ProjectNumber(args[0])
			if err != nil {
				return err
			}
			if err := r.dial(cmd.Context()); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.close()) }()
			q := drillingv1.NewQueryClient(r.role.Chain.Conn)
			a, err := q.Project(cmd.Context(), &drillingv1.QueryProjectRequest{Project: n})
			if err != nil {
				return fmt.Errorf("%w; tally drill project ls shows those that there are", err)
			}
			row := newProjectRow(&a.Project)
			if row.Orders, err = tasksOf(cmd.Context(), q, n); err != nil {
				return err
			}
			return r.e.show(row, func(w io.Writer) { row.tell(w) })
		},
	}
	r.flags(cmd.Flags())
	return cmd
}

func (p *projectRow) tell(w io.Writer) {
	fmt.Fprintf(w, "project %d, %s: %s\n  %s\n  partner   %s, %s\n", p.Project, p.Status, p.Name, p.Summary, p.Partner, p.Contact)
	fmt.Fprintf(w, "  drilled   %s of %s; tasks in the market may come to %s\n  deposit   %v\n", wire.UtText(p.Drilled), wire.UtText(p.Budget), wire.UtText(p.Pending), consume.Amount(p.Deposit))
	for _, t := range p.Orders {
		fmt.Fprintf(w, "  task %-4d order %s, %s\n", t.Task, t.Order, wire.UtText(t.Drilled))
	}
}

// tasksOf returns the tasks of a project that the chain still knows, oldest first.
func tasksOf(ctx context.Context, q drillingv1.QueryClient, project uint64) ([]taskRow, error) {
	var out []taskRow
	page := &query.PageRequest{}
	for {
		a, err := q.Tasks(ctx, &drillingv1.QueryTasksRequest{Project: project, Pagination: page})
		if err != nil {
			return nil, fmt.Errorf("tasks of project %d: %w", project, err)
		}
		for _, t := range a.Tasks {
			out = append(out, taskRow{t.Number, t.Order, t.Drilled})
		}
		if a.Pagination == nil || len(a.Pagination.NextKey) == 0 || len(a.Tasks) == 0 {
			return out, nil
		}
		page = &query.PageRequest{Key: a.Pagination.NextKey}
	}
}

func (b *buyer) publishTask() *cobra.Command {
	f := batchFlags{target: target{format: "jsonl"}}
	var allow []string
	cmd := &cobra.Command{
		Use: "publish TASK.yaml", Short: "Publish a task of a project of yours",
		Long: `Publishes a task: an order file as for tally batch, with a line project: NUMBER. All its
work is credited as drilling, so it burns as much as that takes. Each unit is computed by
replicas, or a part of it is audited. It ends and is fetched like any batch; tally drill
results collects what all tasks of a project gave.`,
		Example: "  tally drill publish task.yaml --home tally-devnet/consumer", Args: arguments("publish TASK.yaml"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := consume.ReadBatchSpec(args[0], allow...)
			switch {
			case err != nil:
				return err
			case s.Project == 0:
				return fmt.Errorf("%s names no project: write project: NUMBER, or post it as an order of your own by tally batch", args[0])
			}
			if err := b.start(cmd); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.close()) }()
			return b.batch(cmd.Context(), s, f)
		},
	}
	allowFlag(cmd, &allow)
	cmd.Flags().BoolVar(&f.again, "again", false, "publish the task, and pay for it, though it was published before")
	b.peer(cmd.Flags())
	return cmd
}

// taskResult is what a task gave: a row for each of its records.
type taskResult struct {
	taskRow
	Status string            `json:"status"`
	File   string            `json:"file,omitempty"`
	Rows   []json.RawMessage `json:"rows,omitempty"`
}

func (b *buyer) taskResults() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "results PROJECT", Short: "Collect the results of a project's tasks, as rows",
		Long: `Collects what the settled tasks of a project gave. Each result is checked against the
roots that the chain has, and lies with its proof in a folder of its order. What was
collected before is not fetched again, so that a second call goes on where tasks have been
settled since. Custodians let results go a quarter of an hour after a task's end: collect
them by then. With --json all rows are printed; otherwise they are in results.jsonl.`,
		Example: "  tally drill results 1 --home tally-devnet/consumer --out irises\n  tally drill results 1 --json --home tally-devnet/consumer | jq '[.[].rows[]?] | min_by(.validation_loss)'",
		Args:    arguments("results PROJECT"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			n, err := messages.ProjectNumber(args[0])
			if err != nil {
				return err
			}
			if out == "" {
				out = "project-" + args[0]
			}
			if err := b.start(cmd); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.close()) }()
			return b.results(cmd.Context(), n, out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "directory for the results (default project-NUMBER)")
	b.peer(cmd.Flags())
	return cmd
}

func (b *buyer) results(ctx context.Context, project uint64, out string) error {
	dir, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	q := drillingv1.NewQueryClient(b.role.Chain.Conn)
	if _, err := q.Project(ctx, &drillingv1.QueryProjectRequest{Project: project}); err != nil {
		return fmt.Errorf("%w; tally drill project ls shows those that there are", err)
	}
	tasks, err := tasksOf(ctx, q, project)
	if err != nil {
		return err
	}
	return b.collectAll(ctx, tasks, dir)
}

// collectAll collects what it can get: a task whose results are gone holds up none of the others.
func (b *buyer) collectAll(ctx context.Context, tasks []taskRow, dir string) error {
	all, failed := []taskResult{}, []error(nil)
	for _, t := range tasks {
		r, err := b.collect(ctx, t, dir)
		if err != nil {
			failed = append(failed, fmt.Errorf("task %d, order %.64q: %w", t.Task, t.Order, err))
			r.Status, r.File, r.Rows = "not collected", "", nil
		}
		all = append(all, r)
		if ctx.Err() != nil {
			break
		}
	}
	err := b.e.show(all, func(w io.Writer) {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "TASK\tSTATUS\tROWS\tDRILLED\tFILE")
		for _, r := range all {
			fmt.Fprintf(t, "%d\t%s\t%d\t%s\t%s\n", r.Task, r.Status, len(r.Rows), wire.UtText(r.Drilled), r.File)
		}
		_ = t.Flush()
	})
	if len(failed) > 0 {
		failed = append(failed, errors.New("the same command tries again what was not collected"))
	}
	return errors.Join(append(failed, err)...)
}

// resultsFile is what a task's results are in.
const resultsFile = "results.jsonl"

// maxRows bounds the file of a task's results that is read, in bytes.
const maxRows = 256 << 20

// collected reports whether a folder has the results of a task and their proof, which is written after them.
func collected(dir string) (bool, error) {
	for _, name := range []string{resultsFile, consume.BundleName} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// collect gets the results of a task into a folder of a directory, unless they are there, and reads them.
func (b *buyer) collect(ctx context.Context, t taskRow, dir string) (taskResult, error) {
	r := taskResult{taskRow: t, Status: "collected"}
	id, err := canon.ParseHash(t.Order) // before it names a folder
	if err != nil {
		return r, err
	}
	dir = filepath.Join(dir, id.String())
	r.File = filepath.Join(dir, resultsFile)
	if there, err := collected(dir); err != nil {
		return r, err
	} else if !there {
		p, err := consume.Look(ctx, b.role, id)
		if err != nil {
			return r, err
		}
		if p.Lease == nil || p.Lease.Phase != job.Settled || p.Lease.Round == 0 {
			r.Status, r.File = p.String(), ""
			if p.Lease != nil && p.Lease.Phase == job.Settled {
				r.Status = "ended without results"
			}
			return r, nil
		}
		b.tell("fetching the results of task %d", t.Task)
		if _, err := b.desk.Deliver(ctx, desk.DeliveryRequest{Order: id, Dir: dir, Format: "jsonl"}); err != nil {
			return r, err
		}
	}
	text, err := bounded.ReadFile(r.File, maxRows)
	if err != nil {
		return r, err
	}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); !json.Valid(line) {
			return r, fmt.Errorf("row %d of %s is no JSON: remove the file, and it is fetched again", len(r.Rows)+1, r.File)
		}
		r.Rows = append(r.Rows, line)
	}
	return r, nil
}
