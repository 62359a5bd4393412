package speak

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// running is the answer of /api/ps.
type running struct {
	Models []struct {
		Name    string    `json:"name"`
		Memory  int64     `json:"size"`
		Expires time.Time `json:"expires_at"`
	} `json:"models"`
}

// maxAnswer bounds what a gateway says, in bytes.
const maxAnswer = 4 << 20

func (e *Env) ps() *cobra.Command {
	listen, key := DefaultListen, ""
	cmd := &cobra.Command{
		Use: "ps", GroupID: "models", Short: "Show the models that a gateway has ready",
		Long:    "Shows which models a gateway on this machine has in memory, how much they take, and until when\nthey stay if nobody asks them.",
		Example: "  tally ps\n  tally ps --listen 127.0.0.1:11434 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := loaded(cmd.Context(), listen, key)
			if err != nil {
				return err
			}
			return e.Show(r, func(w io.Writer) { tellRunning(w, r) })
		},
	}
	cmd.Flags().StringVar(&listen, "listen", listen, "address on which the gateway listens")
	cmd.Flags().StringVar(&key, "key", "", "key, if the gateway wants one")
	return cmd
}

func loaded(ctx context.Context, listen, key string) (*running, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listen+"/api/ps", nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		q.Header.Set("Authorization", "Bearer "+key)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	r := &running{}
	if a.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(a.Body, 1<<10))
		return nil, fmt.Errorf("%s answers %s: %s", listen, a.Status, text)
	}
	return r, json.NewDecoder(io.LimitReader(a.Body, maxAnswer)).Decode(r)
}

func tellRunning(w io.Writer, r *running) {
	if len(r.Models) == 0 {
		fmt.Fprintln(w, "no model is ready: one is opened when it is first asked for")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tMEMORY\tUNTIL")
	for _, m := range r.Models {
		until := "for ever"
		if !m.Expires.IsZero() && time.Until(m.Expires) < 50*365*24*time.Hour {
			until = m.Expires.Local().Format(time.DateTime)
		}
		fmt.Fprintf(t, "%s\t%.4g MB\t%s\n", m.Name, float64(m.Memory)/1e6, until)
	}
	t.Flush()
}
