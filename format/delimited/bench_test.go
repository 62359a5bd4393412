package delimited_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tally-network/tally/format/delimited"
)

// tables are texts of 10 MB or so, as pandas writes them.
var tables = []struct {
	name string
	cell func(r *rand.Rand) string
}{
	{"integers", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(100000)) }},
	{"short", func(r *rand.Rand) string { return fmt.Sprintf("%.3f", 100*r.NormFloat64()) }},
	{"long", func(r *rand.Rand) string { return fmt.Sprint(r.Float64()) }},
	{"categories", func(r *rand.Rand) string { return "category " + fmt.Sprint(r.IntN(100)) }},
	{"texts", func(r *rand.Rand) string { return fmt.Sprintf("\"a text, and %x\"", r.Uint64()) }},
}

func BenchmarkRead(b *testing.B) {
	for _, x := range tables {
		b.Run(x.name, func(b *testing.B) {
			const records, columns = 50000, 10
			r := rand.New(rand.NewPCG(1, 2))
			var text strings.Builder
			text.WriteString("a,b,c,d,e,f,g,h,i,j\n")
			for range records {
				for i := range columns {
					if i > 0 {
						text.WriteByte(',')
					}
					text.WriteString(x.cell(r))
				}
				text.WriteByte('\n')
			}
			in := []byte(text.String())
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := delimited.Read(in, delimited.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
