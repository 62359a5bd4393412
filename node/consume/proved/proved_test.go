package proved_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/format/schema"
	"github.com/tally-network/tally/format/text"
	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/node/consume/proved"
	"github.com/tally-network/tally/node/replay"
)

// What an order trained on says with what it can go on.
func TestWhatAnOrderCanGoOnWith(t *testing.T) {
	characters, err := text.Train("some text", 20)
	if err != nil {
		t.Fatal(err)
	}
	known, err := schema.Schema{Inputs: []schema.Input{}}.Encoded()
	if err != nil {
		t.Fatal(err)
	}
	const onlyData, onlyText, either = "name problem.data in place of problem.text", "name problem.text in place of problem.data", ""
	for name, c := range map[string]struct {
		files map[string][]byte
		want  string
	}{
		"a table":           {map[string][]byte{replay.RoleSchema: known}, onlyData},
		"characters":        {map[string][]byte{replay.RoleTokenizer: characters.Encoded()}, onlyText},
		"a text of tokens":  {map[string][]byte{replay.RoleTokenizer: tokenizer.OfBytes()}, either},
		"chats":             {map[string][]byte{replay.RoleTokenizer: tokenizer.OfBytes(), replay.RoleSchema: known}, either},
		"a false schema":    {map[string][]byte{replay.RoleSchema: []byte("{}")}, "schema: version"},
		"a false tokenizer": {map[string][]byte{replay.RoleTokenizer: []byte("{}")}, "token"},
		"no file":           {map[string][]byte{replay.RoleSchema: nil}, "no such file"},
	} {
		o := &job.Order{Problem: job.Problem{Kind: job.Training}}
		for role := range c.files { // order: a set
			o.Problem.Files = append(o.Problem.Files, job.File{Role: role})
		}
		of, err := proved.Of(o, &replay.Job{}, func(f job.File) ([]byte, error) {
			if b := c.files[f.Role]; b != nil {
				return b, nil
			}
			return nil, errors.New("no such file")
		})
		for _, data := range []bool{false, true} {
			err := err
			if err == nil {
				err = of.Suits(data)
			}
			if right := c.want == either || c.want == onlyData && data || c.want == onlyText && !data; (err == nil) != right || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, with data %v: %v, want %q", name, data, err, c.want)
			}
		}
	}
	for kind, work := range map[string]*replay.Job{job.Batch: {}, job.Training: nil} {
		if _, err := proved.Of(&job.Order{Problem: job.Problem{Kind: kind}}, work, nil); err == nil || !strings.Contains(err.Error(), "trained nothing") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
