package weights

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/tally-network/tally/internal/bounded"
)

// directory keeps packed weights as files, each named by its key: a header, which fills a
// page, and the bytes. All that goes wrong with a file means that it is not there.
type directory struct {
	path  string
	limit int
}

const (
	suffix      = ".packed"
	unfinished  = ".part"
	headerBytes = 4096 // a page, so that what follows is aligned
	magic       = "tally packed weight, form 1\n"
	abandoned   = time.Hour // after which a file that is still unfinished is of a process that died
)

// openDirectory returns the files at a path, and clears away what processes that died have
// left unfinished.
func openDirectory(path string, limit int) (*directory, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("directory for packed weights: %w", err)
	}
	d := &directory{path, limit}
	d.each(unfinished, func(name string, i fs.FileInfo) {
		if time.Since(i.ModTime()) > abandoned {
			os.Remove(name)
		}
	})
	return d, nil
}

// ownName is how the files of a directory are called: others may be there as well.
var ownName = regexp.MustCompile(`^[0-9a-f]{64}(\.packed|\.[0-9]+\.part)$`)

// each calls do for every file of the directory's own whose name ends so.
func (d *directory) each(end string, do func(name string, i fs.FileInfo)) {
	all, err := os.ReadDir(d.path)
	if err != nil {
		return
	}
	for _, e := range all {
		if i, err := e.Info(); err == nil && ownName.MatchString(e.Name()) && strings.HasSuffix(e.Name(), end) && i.Mode().IsRegular() {
			do(filepath.Join(d.path, e.Name()), i)
		}
	}
}

// name returns the file that belongs to a key, without the end of its name.
func (d *directory) name(key Key) string {
	sum := sha256.Sum256(append(key.Root[:], key.Layout...))
	return filepath.Join(d.path, hex.EncodeToString(sum[:]))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is what stands before the bytes of a key: what the file is, and their checksum.
func header(key Key, bytes []byte) []byte {
	sum := sha256.Sum256([]byte(key.Layout))
	out := append(make([]byte, 0, headerBytes), magic...)
	out = append(append(out, key.Root[:]...), sum[:]...)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(bytes)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(bytes, castagnoli))
	return out[:headerBytes]
}

// load maps the file of a key. It returns nil if there is none, and removes one that is not
// what it should be.
func (d *directory) load(key Key, size int) *Packed {
	name := d.name(key) + suffix
	all, err := openMapped(name, headerBytes+size)
	if err != nil {
		if !os.IsNotExist(err) {
			os.Remove(name)
		}
		return nil
	}
	p := newMapped(all)
	if string(all[:headerBytes]) != string(header(key, p.bytes)) {
		os.Remove(name)
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(name, now, now) // used last
	return p
}

// openMapped maps a file, which must have so many bytes.
func openMapped(name string, size int) ([]byte, error) {
	f, has, err := bounded.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if has != int64(size) {
		return nil, fmt.Errorf("%s does not have %d bytes", name, size)
	}
	return mapFile(f, size)
}

// save writes the file of a key, if it can, and removes the oldest where files take too much.
func (d *directory) save(key Key, bytes []byte) {
	if headerBytes+len(bytes) > d.limit {
		return
	}
	name := d.name(key)
	f, err := os.CreateTemp(d.path, filepath.Base(name)+".*"+unfinished)
	if err != nil {
		return
	}
	_, err = f.Write(header(key, bytes))
	if err == nil {
		_, err = f.Write(bytes)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name+suffix)
	}
	if err != nil {
		os.Remove(f.Name())
		return
	}
	d.prune()
}

// prune removes the files that were used longest ago, until the others are within the limit.
func (d *directory) prune() {
	type file struct {
		name string
		size int
		used time.Time
	}
	var all []file
	total := 0
	d.each(suffix, func(name string, i fs.FileInfo) {
		all = append(all, file{name, int(i.Size()), i.ModTime()})
		total += int(i.Size())
	})
	slices.SortFunc(all, func(a, b file) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.name, b.name)) })
	for _, f := range all {
		if total <= d.limit {
			return
		}
		if os.Remove(f.name) == nil {
			total -= f.size
		}
	}
}

// bytesOf returns the memory of words.
func bytesOf(words []uint64) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
}
