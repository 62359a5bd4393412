package parquet_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tally-network/tally/format/delimited"
	"github.com/tally-network/tally/format/jsonlines"
	"github.com/tally-network/tally/format/parquet"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// file returns a file that testdata/make.py wrote.
func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(b []byte) (*table.Table, error) {
	return parquet.Read(bytes.NewReader(b), int64(len(b)), nil)
}

// told writes a table, a line for each column; what is missing is "–".
func told(t *table.Table) string {
	var b strings.Builder
	for _, c := range t.Columns {
		var values []string
		for i := range c.Len() {
			switch {
			case c.Lacks(i):
				values = append(values, "–")
			case c.Kind == table.Array:
				row, err := c.Values.Row(i)
				if err != nil {
					return err.Error()
				}
				values = append(values, string(jsonlines.Append(nil, row, row.Shape, 0)))
			default:
				values = append(values, c.Value(i))
			}
		}
		typ := c.Kind.String()
		if c.Values != nil && c.Kind != table.Category {
			typ = c.Values.Type.String()
		}
		fmt.Fprintf(&b, "%s %s: %s\n", c.Name, typ, strings.Join(values, "|"))
	}
	return b.String()
}

const want = `i8 int8: 1|–|-128
u16 uint16: 0|65535|7
i64 int64: -9223372036854775808|9223372036854775807|–
u64 uint64: 18446744073709551615|0|1
f16 float16: 0.5|-2|65504
f32 float32: 0.1|–|3
f64 float64: 0.1|–|-0
ok bool: true|–|false
text text: é|–|
none float64: –|–|–
vector float32: [1,2]|[3,4]|[5,6]
fixed int16: [1,2,3]|[1,2,3]|[1,2,3]
matrix int64: [[1,2,3],[4,5,6]]|[[7,8,9],[10,11,12]]|[[0,0,0],[1,1,1]]
point.x int64: 1|–|–
point.y.z text: a|b|–
day int32: 1|2|–
label text: b|a|b
`

// Files of pyarrow are read, in whatever pages, encodings and compressions they are written.
func TestRead(t *testing.T) {
	for _, name := range []string{"v1", "v2", "plain", "groups", "delta"} {
		got, err := read(file(t, name+".parquet"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if told(got) != want {
			t.Errorf("%s is read as\n%swant\n%s", name, told(got), want)
		}
	}
}

// Chats are the JSON that they are elsewhere, whatever of them is null or empty.
func TestReadDocuments(t *testing.T) {
	for _, name := range []string{"chats.parquet", "chats2.parquet"} {
		got, err := read(file(t, name))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(file(t, "chats.jsonl"))), "\n")
		if got.Records != len(lines) || len(got.Columns) != 4 || got.Columns[3].Kind != table.Text {
			t.Fatalf("%s: %d records of %d columns", name, got.Records, len(got.Columns))
		}
		for i, line := range lines {
			var want map[string]json.RawMessage
			if err := json.Unmarshal([]byte(line), &want); err != nil {
				t.Fatal(err)
			}
			for _, c := range got.Columns[:3] {
				if c.Kind != table.JSON || c.Value(i) != string(want[c.Name]) || c.Lacks(i) != (want[c.Name] == nil) {
					t.Errorf("%s, record %d: %s is %s, want %s", name, i, c.Name, c.Value(i), want[c.Name])
				}
			}
		}
	}
	if got, err := read(file(t, "texts.parquet")); err != nil || told(got) != "l json: [\"a\"]\n" {
		t.Errorf("%v, %v", got, err)
	}
}

// Several pages give what pandas wrote beside them as text.
func TestPagesAreReadAsText(t *testing.T) {
	csv, err := delimited.Read(file(t, "many.csv"), delimited.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"many.parquet", "manydelta.parquet"} {
		got, err := read(file(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range got.Columns {
			other := csv.Columns[i]
			for k := range got.Records {
				if c.Value(k) != other.Value(k) || c.Lacks(k) != other.Lacks(k) {
					t.Fatalf("%s, column %s, record %d: %q, want %q", name, c.Name, k, c.Value(k), other.Value(k))
				}
			}
		}
		if label := got.Columns[4]; label.Kind != table.Category || strings.Join(label.Categories, "") != "abc" {
			t.Errorf("labels are %v of %q", label.Kind, label.Categories)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	good := file(t, "v1.parquet")
	at := len(good) - 8
	for _, c := range []struct {
		bytes []byte
		want  string
	}{
		{nil, "too short"},
		{[]byte("PAR1xxxxxxxxPARE"), "encrypted"},
		{[]byte("PAR1xxxxxxxxxxxx"), "does not end in PAR1"},
		{append(binary.LittleEndian.AppendUint32([]byte("PAR1"), 1<<30), "PAR1"...), "the metadata has 1073741824 bytes, and the file 12"},
		{append(binary.LittleEndian.AppendUint32([]byte("PAR1"), 0), "PAR1"...), "metadata ends too early"},
		{append([]byte("PAR1"), good[at/2:]...), ""},
		{file(t, "decimal.parquet"), `column "d" is decimal`},
		{file(t, "map.parquet"), `column "m" is a map`},
		{file(t, "bytes.parquet"), `column "b": it holds bytes`},
		{file(t, "ragged.parquet"), `column "l": its lists have several shapes`},
		{file(t, "lacking.parquet"), `column "l": a list is missing`},
		{file(t, "brotli.parquet"), "compression 4 is not read"},
		{file(t, "bomb.parquet"), "times its file"},
		{file(t, "names.parquet"), "times its file"},                   // 60,000 structs with a field of a long name, in 1 kB
		{file(t, "rows.parquet"), "1 values in 2147483647 rows"},       // of lists, in 143 bytes
		{file(t, "overlapping.parquet"), "its columns take more than"}, // groups that share their pages
		{[]byte("PAR1" + "\x29" + strings.Repeat("\x1c", 100) + "\x65\x00\x00\x00PAR1"), "nested more than"},
	} {
		used := memory.Allocated(func() {
			if _, err := read(c.bytes); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.20q: %v, want %q", c.bytes, err, c.want)
			}
		})
		if used > memory.Slack {
			t.Errorf("%.20q took %d bytes", c.bytes, used)
		}
	}
}

// Wherever a file is damaged, it is read or refused, and takes no more memory than allowed.
func TestDamagedFiles(t *testing.T) {
	for _, name := range []string{"v1.parquet", "v2.parquet", "delta.parquet", "chats.parquet"} {
		good := file(t, name)
		for at := range good {
			b := bytes.Clone(good)
			b[at] ^= byte(1 << (at % 8))
			_, _ = read(b)
			if at%16 == 0 {
				_, _ = read(b[:at])
			}
		}
	}
}

// FuzzRead reads arbitrary bytes, in memory in proportion to them.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"v1", "v2", "plain", "groups", "delta", "ragged", "map", "chats", "chats2"} {
		f.Add(file(f, name+".parquet"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		used := memory.Allocated(func() {
			if got, err := read(b); err == nil {
				for _, c := range got.Columns {
					if c.Len() != got.Records {
						t.Errorf("%d records of %d", c.Len(), got.Records)
					}
				}
			}
		})
		if used > 5000*int64(len(b))+2*memory.Slack {
			t.Fatalf("%d bytes took %d", len(b), used)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	in := file(b, "many.parquet")
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := read(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadDocuments(b *testing.B) {
	in := file(b, "chats.parquet")
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := read(in); err != nil {
			b.Fatal(err)
		}
	}
}
