package images_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/images"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// archive reads a file that testdata/make.py wrote.
func archive(t testing.TB, name string) map[string]*tensor.Tensor {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := npy.ReadArchive(bytes.NewReader(b), int64(len(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every bit is Pillow's.
func TestResizeIsPillows(t *testing.T) {
	all, compared := archive(t, "testdata/resize.npz"), 0
	for name, in := range all {
		name, ok := strings.CutSuffix(name, "-in")
		if !ok {
			continue
		}
		for f, filter := range map[string]images.Filter{"bilinear": images.Bilinear, "bicubic": images.Bicubic} {
			want := all[name+"-"+f]
			got, err := images.Resize(in, want.Shape[0], want.Shape[1], filter)
			if err != nil || !got.Equal(want) {
				t.Errorf("%s, %s: %v, %v\nwant %v", name, f, got, err, want)
			}
			compared++
		}
	}
	if compared < 50 {
		t.Errorf("only %d were compared", compared)
	}
}

// The pixels of PNG are Pillow's. Those of JPEG are not: decoders may differ, by little where
// colors are not subsampled.
func TestDecodeIsPillows(t *testing.T) {
	all, compared := archive(t, "testdata/decode.npz"), 0
	for name, file := range all {
		most := 0
		switch {
		case strings.HasSuffix(name, ".png"):
		case strings.HasSuffix(name, ".jpeg"):
			most = 3
			if strings.Contains(name, "420") {
				most = 24
			}
		default:
			continue
		}
		for _, channels := range []int{1, 3} {
			want := all[fmt.Sprintf("%s-%d", name, channels)]
			got, err := images.Decode(file.Bytes(), channels, images.MaxPixels)
			if err != nil || !got.Shape.Equal(want.Shape) {
				t.Errorf("%s: %v, %v", name, got, err)
				continue
			}
			for i, v := range got.Bytes() {
				if d := int(v) - int(want.Bytes()[i]); d > most || -d > most {
					t.Errorf("%s, %d channels: byte %d is %d, want %d", name, channels, i, v, want.Bytes()[i])
					break
				}
			}
			compared++
		}
	}
	if compared < 20 {
		t.Errorf("only %d were compared", compared)
	}
}

// picture returns the file of an image of one color.
func picture(t testing.TB, h, w int, c color.Color) string {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, c)
		}
	}
	var in image.Image = m
	if _, gray := c.(color.Gray); gray {
		in = image.NewGray(m.Rect)
		for i, p := range in.(*image.Gray).Pix {
			in.(*image.Gray).Pix[i] = p + c.(color.Gray).Y
		}
	}
	if wide, ok := c.(color.NRGBA64); ok {
		deep := image.NewNRGBA64(m.Rect)
		for y := range h {
			for x := range w {
				deep.SetNRGBA64(x, y, wide)
			}
		}
		in = deep
	}
	var b bytes.Buffer
	if err := png.Encode(&b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func folder(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestRead(t *testing.T) {
	red, dark := picture(t, 2, 3, color.NRGBA{200, 1, 2, 255}), picture(t, 2, 3, color.Gray{7})
	got, err := images.Read(folder(map[string]string{
		"dog/a.png": red, "cat/2/b.PNG": red, "cat/10.png": dark, "cat/.hidden.png": "x", ".git/a.png": "x", "dog/readme.txt": "x",
	}), images.Options{})
	if err != nil {
		t.Fatal(err)
	}
	image, label := got.Columns[0], got.Columns[1]
	if image.Name != "image" || image.Kind != table.Image || !image.Values.Shape.Equal(tensor.Shape{3, 2, 3, 3}) || string(image.Values.Bytes()[:3]) != "\x07\x07\x07" || string(image.Values.Bytes()[18:21]) != "\xc8\x01\x02" {
		t.Errorf("images: %v %v", image, image.Values)
	}
	if label.Name != "label" || strings.Join(label.Categories, " ") != "cat dog" || label.Value(0)+label.Value(1)+label.Value(2) != "catcatdog" {
		t.Errorf("labels: %v", label)
	}
	got, err = images.Read(folder(map[string]string{"a.png": dark, "b.png": dark}), images.Options{Height: 5, Width: 4, Fit: images.CropCenter})
	if err != nil || len(got.Columns) != 1 || !got.Columns[0].Values.Shape.Equal(tensor.Shape{2, 5, 4, 1}) || got.Columns[0].Values.Bytes()[39] != 7 {
		t.Errorf("without classes: %v, %v", got, err)
	}
}

func TestReadRefuses(t *testing.T) {
	small, other := picture(t, 2, 3, color.Gray{7}), picture(t, 3, 3, color.Gray{7})
	for want, c := range map[string]struct {
		files   map[string]string
		options images.Options
	}{
		"there are no images":               {map[string]string{"a.txt": small}, images.Options{}},
		"b.png has 3 × 3 pixels, a/a.png 2": {map[string]string{"a/a.png": small, "b/b.png": other}, images.Options{}},
		"a.png: it is neither PNG nor JPEG": {map[string]string{"a.png": "GIF89a"}, images.Options{}},
		"a/a.png: it is neither":            {map[string]string{"a/a.png": ""}, images.Options{}},
		"unexpected EOF; correct the file":  {map[string]string{"a.png": small[:len(small)-20]}, images.Options{}},
		"such as b.png":                     {map[string]string{"a/a.png": small, "b.png": small}, images.Options{}},
		"such as a.png":                     {map[string]string{"a.png": small, "b/b.png": small}, images.Options{}},
		"limit 5: make it smaller":          {map[string]string{"a.png": small}, images.Options{MaxPixels: 5}},
		"take more than 100 bytes":          {map[string]string{"a.png": small}, images.Options{Height: 10, Width: 10, Channels: 3, MaxBytes: 100}},
		"leave out both":                    {map[string]string{"a.png": small}, images.Options{Height: 10}},
		"take 1 to 32768":                   {map[string]string{"a.png": small}, images.Options{Height: 1 << 40, Width: 1 << 40}},
		"2 channels":                        {map[string]string{"a.png": small}, images.Options{Channels: 2}},
		"by more than":                      {map[string]string{"a.png": small}, images.Options{Height: 1 << 15, Width: 1 << 15, MaxBytes: 1 << 40}},
		"an image has 1 to 32768 along":     {map[string]string{"a.png": claim(small, 1<<16, 1)}, images.Options{}},
		"16777216 × 1 pixels":               {map[string]string{"a.png": claim(small, 1, 1<<24)}, images.Options{}},
		"limit 16777216":                    {map[string]string{"a.png": claim(small, 1<<15, 1<<15)}, images.Options{}},
	} {
		if _, err := images.Read(folder(c.files), c.options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// claim makes a PNG say another size.
func claim(file string, w, h uint32) string {
	b := []byte(file)
	binary.BigEndian.PutUint32(b[16:], w)
	binary.BigEndian.PutUint32(b[20:], h)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return string(b)
}

// A small file must not take the memory that it claims.
func TestClaimsTakeNoMemory(t *testing.T) {
	file := claim(picture(t, 1, 1, color.NRGBA{1, 2, 3, 4}), 1<<12, 1<<12)
	used := memory.Allocated(func() { _, _ = images.Decode([]byte(file), 3, 1<<20) })
	if used > memory.Slack/16 {
		t.Errorf("%d bytes", used)
	}
}

func TestDecodeKeepsHighBytesAndColorsBelow(t *testing.T) {
	for _, c := range []struct {
		color color.Color
		want  string
	}{
		{color.NRGBA64{0x12ff, 0x3400, 0x56ab, 0xffff}, "\x12\x34\x56"},
		{color.NRGBA{200, 100, 50, 0}, "\xc8\x64\x32"},
		{color.NRGBA{200, 100, 50, 128}, "\xc8\x64\x32"},
	} {
		got, err := images.Decode([]byte(picture(t, 1, 1, c.color)), 3, 1)
		if err != nil || string(got.Bytes()) != c.want {
			t.Errorf("%v: %v, %v, want %x", c.color, got, err, c.want)
		}
	}
}

// What is cut lies in the middle, has the proportions, and could not be larger.
func TestCrop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		extent := rapid.IntRange(1, 40)
		h, w, height, width := extent.Draw(t, "h"), extent.Draw(t, "w"), extent.Draw(t, "height"), extent.Draw(t, "width")
		in := tensor.Must(tensor.New(tensor.Uint8, tensor.Shape{h, w, 2}))
		for i := range in.Len() {
			in.Bytes()[i] = byte(i%2*100 + i/2/w*w + i/2%w) // its place, in channel 0
		}
		out, err := images.Crop(in, height, width)
		if err != nil {
			t.Fatal(err)
		}
		got := out.Shape
		if got[0] != h && got[1] != w || got[0] > h || got[1] > w {
			t.Fatalf("%v of %v", got, in.Shape)
		}
		if got[0] == h && got[1] != max(1, min(w, h*width/height)) || got[0] != h && got[0] != max(1, min(h, w*height/width)) {
			t.Fatalf("%d × %d of %d × %d for %d × %d", got[0], got[1], h, w, height, width)
		}
		if at := (h-got[0])/2*w + (w-got[1])/2; out.Bytes()[0] != byte(at) || out.Bytes()[1] != byte(100+at) {
			t.Fatalf("begins with %v, want %d", out.Bytes()[:2], at)
		}
	})
}

// FuzzDecode decodes arbitrary bytes, of which few pixels are allowed.
func FuzzDecode(f *testing.F) {
	for name, file := range archive(f, "testdata/decode.npz") {
		if strings.HasSuffix(name, "g") {
			f.Add(file.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		used := memory.Allocated(func() {
			got, err := images.Decode(b, 3, 1<<18)
			if err == nil && (got.Len() == 0 || got.Len() > 3<<18) {
				t.Errorf("decoded as %v", got.Shape)
			}
		})
		if used > 100*int64(len(b))+memory.Slack {
			t.Fatalf("%d bytes took %d", len(b), used)
		}
	})
}

func BenchmarkResize(b *testing.B) {
	in := tensor.Must(tensor.New(tensor.Uint8, tensor.Shape{480, 640, 3}))
	for i := range in.Bytes() {
		in.Bytes()[i] = byte(i * 7)
	}
	for name, f := range map[string]images.Filter{"bilinear": images.Bilinear, "bicubic": images.Bicubic} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := images.Resize(in, 224, 224, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
