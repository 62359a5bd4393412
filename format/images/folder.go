// Package images reads folders of images as tables of pixels, and resizes them as Pillow does.
//
// Call [Read] with a folder that has another for each class, and images in them:
//
//	folder/cat/1.png
//	folder/dog/2.jpg
//
// The table has a column "image", uint8 [n, height, width, channels], and a column "label", the names
// of the folders as a category. Images that lie in no folder of a class give a column "image" alone. Records
// are in the order of their paths. [Decode], [Resize] and [Crop] are for single images.
//
// Images are PNG and JPEG, by their first bytes. They are gray if none has a color or is transparent,
// and red, green and blue otherwise. [Resize] gives the bits of Pillow. So does Decode of PNG, but for samples of
// 16 bits; the bits of JPEG are those of Go's decoder. Orientations that cameras note are not followed.
//
// Invariants: the sizes of all images are read before one is decoded, and are bounded, as is the
// table. One image at a time is decoded. Links that lead out of a folder are for the file system to refuse.
//
// Sources: torchvision's ImageFolder for the layout; Pillow's Resample.c and Convert.c.
package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
)

// Limits on a folder.
const (
	MaxImages = 1 << 22
	MaxTable  = tensor.MaxBytes // bytes of all pixels, unless a caller allows more
)

// Fit says what becomes of images whose proportions are others than those of the size.
type Fit uint8

// What becomes of them.
const (
	Stretch    Fit = iota // they are stretched
	CropCenter            // what is outside the largest middle part of those proportions is lost
)

// Options are what becomes of the images of a folder.
type Options struct {
	Height, Width int // of all; 0: as they are, if all have one size
	Channels      int // 1 or 3; 0: found out
	Filter        Filter
	Fit           Fit
	MaxPixels     int              // of one image; 0: [MaxPixels]
	MaxBytes      int64            // of the table; 0: [MaxTable]
	Allocator     tensor.Allocator // of the table
}

// found is an image of a folder.
type found struct {
	path, class   string
	height, width int
}

// Read returns the images in a folder and below as a table.
func Read(folder fs.FS, o Options) (*table.Table, error) {
	if o.MaxPixels == 0 {
		o.MaxPixels = MaxPixels
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = MaxTable
	}
	if (o.Height == 0) != (o.Width == 0) || min(o.Height, o.Width) < 0 || max(o.Height, o.Width) > MaxExtent {
		return nil, fmt.Errorf("images of %d × %d pixels: take 1 to %d for both, or leave out both", o.Height, o.Width, MaxExtent)
	}
	all, err := find(folder)
	if err != nil {
		return nil, err
	}
	labels, err := classes(all)
	if err != nil {
		return nil, err
	}
	if err := o.settle(folder, all); err != nil {
		return nil, err
	}
	pixels, err := o.decode(folder, all)
	if err != nil {
		return nil, err
	}
	columns := []*table.Column{{Name: "image", Kind: table.Image, Values: pixels}}
	if labels != nil {
		columns = append(columns, labels)
	}
	return table.New(columns...)
}

// find returns the images of a folder, by their paths. Other files, and all that is hidden, are none.
func find(folder fs.FS) (all []found, err error) {
	err = fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case d.IsDir() || strings.HasPrefix(d.Name(), ".") || !slices.Contains([]string{".png", ".jpg", ".jpeg"}, strings.ToLower(path.Ext(name))):
			return nil
		case len(all) == MaxImages:
			return fmt.Errorf("more than %d images: read them in parts", MaxImages)
		}
		class, _, nested := strings.Cut(name, "/")
		if !nested {
			class = ""
		}
		all = append(all, found{path: name, class: class})
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("there are no images: put files that end in .png, .jpg or .jpeg into a folder for each class")
	}
	return all, err
}

// classes returns the column of labels; none if no image lies in a folder.
func classes(all []found) (*table.Column, error) {
	b, some := table.NewTextBuilder(table.Category, len(all), 0, nil), false
	for _, f := range all {
		if some = some || f.class != ""; some && (f.class == "" || all[0].class == "") {
			return nil, fmt.Errorf("some images lie in folders of classes and some, such as %s, beside these: move them into one, or take them out", alone(all))
		}
		if err := b.Append([]byte(f.class)); err != nil {
			return nil, fmt.Errorf("classes: %w", err)
		}
	}
	if !some {
		return nil, nil
	}
	return b.Column("label")
}

// alone returns the path of an image that lies in no folder.
func alone(all []found) string {
	return all[slices.IndexFunc(all, func(f found) bool { return f.class == "" })].path
}

// settle reads the sizes of all images, and finds out what the options leave open.
func (o *Options) settle(folder fs.FS, all []found) error {
	gray := true
	for i := range all {
		f := &all[i]
		h, err := header(folder, f.path)
		if err == nil && h.Height*h.Width > o.MaxPixels {
			err = fmt.Errorf("%d × %d pixels, limit %d: make it smaller", h.Height, h.Width, o.MaxPixels)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		f.height, f.width = h.Height, h.Width
		gray = gray && h.Gray
	}
	if o.Channels == 0 {
		if o.Channels = 3; gray {
			o.Channels = 1
		}
	}
	if o.Height == 0 {
		o.Height, o.Width = all[0].height, all[0].width
		for _, f := range all {
			if f.height != o.Height || f.width != o.Width {
				return fmt.Errorf("%s has %d × %d pixels, %s %d × %d: say to which height and width all are resized", f.path, f.height, f.width, all[0].path, o.Height, o.Width)
			}
		}
	}
	if need := int64(o.Height) * int64(o.Width) * int64(o.Channels); need > o.MaxBytes/int64(len(all)) {
		return fmt.Errorf("%d images of %d × %d pixels with %d channels take more than %d bytes: resize them to less", len(all), o.Height, o.Width, o.Channels, o.MaxBytes)
	}
	return nil
}

// decode returns the pixels of all images.
func (o *Options) decode(folder fs.FS, all []found) (*tensor.Tensor, error) {
	out, err := o.Allocator.New(tensor.Uint8, tensor.Shape{len(all), o.Height, o.Width, o.Channels})
	if err != nil {
		return nil, err
	}
	each := o.Height * o.Width * o.Channels
	for i, f := range all {
		t, err := o.load(folder, f.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; correct the file, or take it out", f.path, err)
		}
		copy(out.Bytes()[i*each:][:each], t.Bytes())
	}
	return out, nil
}

// load returns the pixels of an image in the size of all.
func (o *Options) load(folder fs.FS, name string) (*tensor.Tensor, error) {
	b, err := contents(folder, name)
	if err != nil {
		return nil, err
	}
	t, err := Decode(b, o.Channels, o.MaxPixels)
	if err == nil && o.Fit == CropCenter {
		t, err = Crop(t, o.Height, o.Width)
	}
	if err != nil {
		return nil, err
	}
	return Resize(t, o.Height, o.Width, o.Filter)
}

// header returns what the beginning of a file of a folder says.
func header(folder fs.FS, name string) (Header, error) {
	f, err := open(folder, name)
	if err != nil {
		return Header{}, err
	}
	h, err := ReadHeader(io.LimitReader(f, MaxFile))
	return h, errors.Join(err, f.Close())
}

// contents reads a file of a folder.
func contents(folder fs.FS, name string) ([]byte, error) {
	f, err := open(folder, name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxFile))
	return b, errors.Join(err, f.Close())
}

// open opens a regular file of a folder.
func open(folder fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(folder, name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > MaxFile) {
		err = fmt.Errorf("it has %d bytes, limit %d, or is no regular file: take it out", info.Size(), MaxFile)
	}
	if err != nil {
		return nil, err
	}
	return folder.Open(name)
}
