package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what a program knows of its own making.
type build struct {
	Version  string            `json:"version"`
	Commit   string            `json:"commit,omitempty"`
	Time     string            `json:"time,omitempty"` // of the commit
	Modified bool              `json:"modified,omitempty"`
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Modules  map[string]string `json:"modules"`
}

// told are the modules whose version says how the chain behaves.
var told = map[string]string{
	"github.com/cosmos/cosmos-sdk": "cosmos-sdk",
	"github.com/cometbft/cometbft": "cometbft",
	"github.com/libp2p/go-libp2p":  "go-libp2p",
}

func readBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Modules: map[string]string{}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, m := range info.Deps {
		if name := told[m.Path]; name != "" {
			b.Modules[name] = m.Version
		}
	}
	return b
}

func (e *env) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", GroupID: "other", Args: cobra.NoArgs,
		Short:   "Say which build this is",
		Example: "  tally version --json",
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			return e.show(b, func(w io.Writer) {
				fmt.Fprintf(w, "tally %s %s\n", b.Version, b.Commit)
				fmt.Fprintf(w, "%s %s, cosmos-sdk %s, cometbft %s, go-libp2p %s\n", b.Go, b.Platform,
					b.Modules["cosmos-sdk"], b.Modules["cometbft"], b.Modules["go-libp2p"])
			})
		},
	}
}
