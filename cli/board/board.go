// Package board draws the demo on a terminal: rounds, units, workers, audits and the search of a
// dispute, ten times a second.
//
// Call [Show].
//
// Invariant: it only reads what the demo tells; nothing waits for a frame.
package board

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/demo"
)

// Show runs the demo behind a board on a terminal that is drawn anew as things change. Ctrl-C and q
// stop the demo; what it logs must go elsewhere.
func Show(ctx context.Context, in io.Reader, out io.Writer, o *demo.Options) (r *demo.Report, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &sight{cancel: cancel}
	p := tea.NewProgram(s, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	o.Board = s.set
	go func() {
		r, err = demo.Run(ctx, *o)
		p.Send(finished{})
	}()
	if _, err := p.Run(); err != nil {
		return nil, fmt.Errorf("draw on the terminal: %w", err)
	}
	return r, err
}

// finished tells the board that the demo has ended.
type finished struct{}

type tick struct{}

// sight is what is drawn: the newest state of the demo.
type sight struct {
	cancel context.CancelFunc
	mu     sync.Mutex
	board  demo.Board
	begun  time.Time
	width  int
	leave  bool
}

func (s *sight) set(b demo.Board) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.board = b
}

const frame = 100 * time.Millisecond

func next() tea.Cmd { return tea.Tick(frame, func(time.Time) tea.Msg { return tick{} }) }

// Init implements tea.Model.
func (s *sight) Init() tea.Cmd {
	s.begun = time.Now()
	return next()
}

// Update implements tea.Model.
func (s *sight) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tick:
		return s, next()
	case finished:
		return s, tea.Quit
	case tea.WindowSizeMsg:
		s.width = m.Width
	case tea.KeyMsg:
		if m.Type == tea.KeyCtrlC || m.String() == "q" {
			s.leave = true
			s.cancel() // the demo stops, and then the board
		}
	}
	return s, nil
}

var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
	good  = lipgloss.NewStyle().Foreground(lipgloss.Color("2"))
	bad   = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
)

// View implements tea.Model.
func (s *sight) View() string {
	s.mu.Lock()
	b := s.board
	s.mu.Unlock()
	var v strings.Builder
	stage := b.Stage
	if s.leave {
		stage = "stopping"
	}
	fmt.Fprintf(&v, "%s  %s  %s\n\n", bold.Render("Tally demo"), stage, faint.Render(fmt.Sprintf("%.0f s", time.Since(s.begun).Seconds())))
	if len(b.Workers) > 0 {
		fmt.Fprintf(&v, "  round %d of %d   %s   %s\n", min(b.Round+1, b.Rounds), b.Rounds, units(b.Units), faint.Render("□ open ◇ computing ▫ posted ▪ kept ■ accepted"))
		fmt.Fprintf(&v, "  loss  %s\n", losses(b.Loss))
		fmt.Fprintf(&v, "  batch %s\n\n", units(b.Batch))
		for _, w := range b.Workers {
			fmt.Fprintf(&v, "  %-12s %s\n", w.Name, worker(w))
		}
		fmt.Fprintf(&v, "\n  audits  %s passed", good.Render(fmt.Sprint(b.Audits[0])))
		if b.Audits[1] > 0 {
			fmt.Fprintf(&v, ", %s failed", bad.Render(fmt.Sprint(b.Audits[1])))
		}
		fmt.Fprintf(&v, "   challenger re-executed %d\n", b.Replayed)
	}
	if b.Dispute != nil {
		fmt.Fprintf(&v, "\n%s\n", search(b.Dispute))
	}
	v.WriteString("\n")
	for _, l := range b.Lines {
		if s.width > 1 { // 0 until the terminal has told
			l = ansi.Truncate(l, s.width-1, "")
		}
		fmt.Fprintln(&v, faint.Render(l))
	}
	return v.String()
}

func units(us []job.Status) string {
	marks := map[job.Status]string{job.Open: "□", job.Assigned: "◇", job.Received: "▫", job.Counted: "▪", job.Accepted: "■"}
	var v strings.Builder
	for _, u := range us {
		v.WriteString(marks[u])
	}
	return v.String()
}

// losses draws the loss of the rounds as bars.
func losses(ls []float32) string {
	if len(ls) == 0 {
		return faint.Render("not yet")
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	var v strings.Builder
	for _, l := range ls {
		at := int(l / 4.5 * float32(len(bars))) // a uniform guess over 90 characters is 4.5
		v.WriteRune(bars[max(0, min(at, len(bars)-1))])
	}
	fmt.Fprintf(&v, "  %.3f nats per character", ls[len(ls)-1])
	return v.String()
}

func worker(w demo.Worker) string {
	switch {
	case w.Out:
		return bad.Render("convicted and slashed")
	case w.Unit < 0:
		return faint.Render("waits for a unit")
	}
	const width = 16
	done := w.Step * width / max(w.Steps, 1)
	bar := strings.Repeat("█", done) + strings.Repeat("░", width-done)
	return fmt.Sprintf("%s unit %-3d step %2d/%d  loss %.3f  %4.1f steps/s", bar, w.Unit, w.Step, w.Steps, w.Loss, w.Rate)
}

// search draws how a dispute narrows.
func search(d *demo.DisputeBoard) string {
	var v strings.Builder
	fmt.Fprintf(&v, "  %s about unit %d of the %s by %s, move %d\n  ", bold.Render("dispute"), d.Unit, d.Order, d.Defender, d.Moves)
	steps := []string{fmt.Sprintf("steps %d–%d", d.StepLo, d.StepHi)}
	if d.StepHi-d.StepLo == 1 {
		steps[0] = fmt.Sprintf("step %d", d.StepLo)
	}
	if d.Node >= 0 {
		steps = append(steps, fmt.Sprintf("node %d %s", d.Node, d.Op))
	}
	if d.FoldHi > 0 {
		steps = append(steps, fmt.Sprintf("tile %d/%d", d.Tile[0], d.Tile[1]))
		if d.FoldHi-d.FoldLo == 1 {
			steps = append(steps, fmt.Sprintf("fold block %d", d.FoldLo))
		} else {
			steps = append(steps, fmt.Sprintf("fold blocks %d–%d", d.FoldLo, d.FoldHi))
		}
	}
	v.WriteString(strings.Join(steps, faint.Render(" ▸ ")))
	if d.Over {
		v.WriteString(bad.Render("  " + d.Loser + " lost"))
	}
	return v.String()
}
