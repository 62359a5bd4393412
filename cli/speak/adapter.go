package speak

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/model/files"
)

// adapterFlags are the values of --adapter: NAME=FOLDER each.
type adapterFlags []string

// adaptersFlag is --adapters: a folder of folders, which is looked into again.
func adaptersFlag(cmd *cobra.Command, folder *string) {
	cmd.Flags().StringVar(folder, "adapters", "", "folder of LoRA adapters of the model, each a folder called as it is; those that come later are served, too")
}

// namedAdapter is a folder with an adapter, and what the model is called that has it.
type namedAdapter struct{ name, folder string }

func (a *adapterFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar((*[]string)(a), "adapter", nil, "a LoRA adapter of the model, as NAME=FOLDER; may be given again")
}

// parse returns them. A folder without a name is called as it lies there.
func (a adapterFlags) parse() (out []namedAdapter, err error) {
	for _, x := range a {
		name, folder, is := strings.Cut(x, "=")
		if !is {
			name, folder = files.NameOf(x), x
		}
		if name == "" || folder == "" {
			return nil, fmt.Errorf("--adapter %q: want NAME=FOLDER", x)
		}
		out = append(out, namedAdapter{name, folder})
	}
	return out, nil
}

// adapterFlag is --adapter of a verb that takes one.
func adapterFlag(cmd *cobra.Command, folder *string) {
	cmd.Flags().StringVar(folder, "adapter", "", "folder of a LoRA adapter, as PEFT writes it: the model is adapted by it")
}

// openAdapted opens a model, with the adapter in a folder unless that is "".
func openAdapted(path, adapter string) (*files.Files, error) {
	f, err := files.Open(path)
	if err != nil || adapter == "" {
		return f, err
	}
	return f.Adapted(adapter)
}
