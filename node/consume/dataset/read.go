package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tally-network/tally/format/images"
	"github.com/tally-network/tally/format/source"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consume/remote"
)

// Fetch fetches the source if it is on another machine, and has the options name what is here then. It returns the folders in
// which that lies, and a source that names these very files; both are empty if it is here anyway. A source that begins with one of
// trusted is asked for by the user's credentials. progress may be nil.
func (o *Options) Fetch(ctx context.Context, trusted []string, progress func(name string, done, total int64)) (folders []string, pinned string, err error) {
	if !remote.Remote(o.Source) {
		return nil, "", nil
	}
	dir, err := remote.Dir()
	if err != nil {
		return nil, "", err
	}
	c := remote.Cache{Dir: dir, Trusted: trusted, Progress: progress}
	f, err := c.Fetch(ctx, o.Source)
	o.Source = f.Path
	return []string{filepath.Dir(f.Path)}, f.Source, err
}

// Read returns the table that the source holds, which lies in one of some folders. Images of a folder get the size of the
// options, or else this one; 0 leaves them as they are. Labels lie beside images in the form of MNIST under the usual name.
func (o *Options) Read(folders []string, height, width int) (*table.Table, error) {
	t, err := o.read(folders, height, width)
	switch {
	case errors.Is(err, bounded.ErrOutside):
		return nil, fmt.Errorf("data: %w: all who work on the order would see it. If you want that, copy it beside the order file, or add --allow with its folder", err)
	case err != nil:
		return nil, fmt.Errorf("data: %w", err)
	}
	return t, nil
}

func (o *Options) read(folders []string, height, width int) (*table.Table, error) {
	kinds := map[string]table.Kind{}
	for name, of := range o.Kinds {
		k, err := table.ParseKind(of)
		if err != nil {
			return nil, fmt.Errorf("kinds: column %.40q: %w", name, err)
		}
		kinds[name] = k
	}
	opt := source.Options{Kinds: kinds, Allocator: o.Allocator, Images: images.Options{Height: height, Width: width}}
	if o.Size != [2]int{} {
		opt.Images.Height, opt.Images.Width = o.Size[0], o.Size[1]
	}
	if o.Crop {
		opt.Images.Fit = images.CropCenter
	}
	if folder, pattern, ok := o.Folder(); ok {
		root, err := bounded.FolderWithin(folders, folder)
		if err != nil {
			return nil, err
		}
		open := func(name string) (*os.File, int64, error) {
			return bounded.OpenWithin(folders, filepath.Join(folder, name))
		}
		t, err := source.ReadFolder(root.FS(), open, pattern, opt)
		return t, errors.Join(err, root.Close())
	}
	t, err := readFile(folders, o.Source, opt)
	files := o.Files()
	if err != nil || len(files) == 1 {
		return t, err
	}
	of, err := readFile(folders, filepath.Join(filepath.Dir(o.Source), files[1]), opt)
	if err != nil {
		return nil, err
	}
	return table.Join(t, of) // whose columns these are
}

// Folder returns the folder in which a source of several files lies, and the pattern of their names, or "" for what training takes
// of it. It reports whether the source is one.
func (o *Options) Folder() (folder, pattern string, ok bool) {
	info, err := os.Stat(o.Source)
	if err == nil {
		return o.Source, "", info.IsDir()
	}
	if folder, pattern = filepath.Split(o.Source); source.HasGlob(pattern) {
		return cmp.Or(folder, "."), pattern, true
	}
	return "", "", false
}

// Files names the source's files in its folder: itself, and the labels beside images in the form of MNIST.
func (o *Options) Files() []string {
	name := filepath.Base(o.Source)
	if labels := strings.Replace(name, "images-idx3", "labels-idx1", 1); labels != name {
		return []string{name, labels}
	}
	return []string{name}
}

func readFile(folders []string, name string, o source.Options) (*table.Table, error) {
	f, size, err := bounded.OpenWithin(folders, name)
	if err != nil {
		return nil, err
	}
	t, err := source.Read(name, f, size, o)
	return t, errors.Join(err, f.Close())
}
