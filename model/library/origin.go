package library

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tally-network/tally/internal/fetch"
)

// origin is a source as it is now.
type origin interface {
	// release names what is there now, so that it is not fetched twice; "" if nobody says.
	release() string
	// list returns all files that there are.
	list(ctx context.Context) ([]fetch.Offered, error)
	// take brings one of them.
	take(ctx context.Context, f fetch.Offered, to string) (sum string, err error)
	close() error
}

const maxOffered = 1 << 16 // files of an origin

// settings are the files of a model's folder, beside its weights.
var settings = []string{
	"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"tokenizer.model", "vocab.json", "vocab.txt", "merges.txt", "chat_template.jinja", "chat_template.json",
	"modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling/config.json", weightIndex,
}

const weightIndex = "model.safetensors.index.json"

// checkListing returns an error unless each file's name is one that leads nowhere else.
func checkListing(files []fetch.Offered) error {
	seen := make(map[string]bool, len(files))
	for _, f := range files {
		switch {
		case len(files) > maxOffered:
			return fmt.Errorf("there are %d files, more than %d", len(files), maxOffered)
		case !filepath.IsLocal(f.Name) || path.Clean(f.Name) != f.Name || strings.ContainsAny(f.Name, "\\\x00"):
			return fmt.Errorf("a file is called %.80q, which leads out of its folder: trust nothing of this source", f.Name)
		case seen[f.Name]:
			return fmt.Errorf("there are two files %.80q: trust nothing of this source", f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

// candidate is a model among the files of an origin: a GGUF file, or a folder.
type candidate struct {
	path  string // "." is the folder that holds all
	gguf  bool
	bytes int64 // of what is known
}

// candidates returns all models among files. What lies in a model's folder is a part of that model.
func candidates(files []fetch.Offered) (all []candidate) {
	configs := map[string]bool{}
	weights := map[string]int64{}
	for _, f := range files {
		switch dir := path.Dir(f.Name); {
		case isGGUF(f.Name):
			all = append(all, candidate{f.Name, true, f.Bytes})
		case path.Base(f.Name) == "config.json":
			configs[dir] = true
		case path.Ext(f.Name) == ".safetensors":
			weights[dir] += max(f.Bytes, 0)
		}
	}
	for dir, bytes := range weights { // sorted below
		if configs[dir] {
			all = append(all, candidate{dir, false, bytes})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.path, b.path) })
	return all
}

// choose returns the model that part names, or else the only one.
func choose(files []fetch.Offered, part string) (*candidate, error) {
	all := candidates(files)
	if part != "" {
		for _, c := range all {
			if c.path == path.Clean(part) {
				return &c, nil
			}
		}
		return nil, fmt.Errorf("there is no model %.80q: %s", part, offer(all))
	}
	outer := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool {
		return slices.ContainsFunc(all, func(d candidate) bool { return d != c && d.holds(c.path) })
	})
	switch len(outer) {
	case 1:
		return &outer[0], nil
	case 0:
		return nil, errNoModel
	}
	return nil, fmt.Errorf("there are several models: %s", offer(outer))
}

var errNoModel = errors.New("there is no model: want a .gguf file, or a folder with config.json and .safetensors files")

func (c candidate) holds(name string) bool {
	return !c.gguf && (c.path == "." || strings.HasPrefix(name, c.path+"/"))
}

// offer lists models as choices.
func offer(all []candidate) string {
	if len(all) == 0 {
		return errNoModel.Error()
	}
	var names []string
	for _, c := range all {
		name := c.path
		if c.bytes >= 0 {
			name += " (" + size(c.bytes) + ")"
		}
		names = append(names, name)
	}
	return "choose one of " + some(names) + ", by #PATH behind a package, :PATH behind hf:ORG/NAME, or its own path on this machine"
}

// size writes bytes for people.
func size(bytes int64) string {
	switch {
	case bytes >= 1e9:
		return fmt.Sprintf("%d.%d GB", bytes/1e9, bytes/1e8%10)
	case bytes >= 1e6:
		return fmt.Sprintf("%d.%d MB", bytes/1e6, bytes/1e5%10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
