package local

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tally-network/tally/format/chat"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/model/files"
)

// listing describes the model at a path, of which no weights are read.
func listing(path string) (reply.Listing, error) {
	d, err := Describe(path)
	if err != nil {
		return reply.Listing{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return reply.Listing{}, err
	}
	l := Listing(files.NameOf(path), d, info.ModTime())
	if d.Encoder != nil {
		return l, nil
	}
	t, err := files.Template(path)
	tellTemplate(&l, t)
	return l, err
}

// tellTemplate says what a template makes possible.
func tellTemplate(l *reply.Listing, t *chat.Template) {
	if t != nil {
		l.Details.Template = t.Source()
		l.Tools = strings.Contains(l.Details.Template, "tools")
	}
}

// Listing says what people see of a model.
func Listing(name string, of Description, modified time.Time) reply.Listing {
	if e := of.Encoder; e != nil {
		return reply.Listing{
			Name: name, Size: e.Bytes, Modified: modified, Context: e.Context, Embeds: true,
			Details: reply.Details{Format: "safetensors", Family: e.Family, Parameters: Parameters(e.Parameters)},
		}
	}
	d := of.Language
	l := reply.Listing{
		Name: name, Size: d.Bytes, Modified: modified, Context: d.Context, Replies: true,
		Details: reply.Details{Format: "safetensors", Family: d.Family, Parameters: Parameters(d.Parameters), License: d.License},
	}
	if len(d.Stored) > 0 {
		l.Details.Format, l.Details.Quantization = "gguf", d.Stored[0].Type
	}
	return l
}

// Parameters is a number of weights as people say it.
func Parameters(n int) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.3gB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.3gM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.3gK", float64(n)/1e3)
}
