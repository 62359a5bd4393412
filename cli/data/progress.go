package data

import (
	"fmt"
	"io"
	"time"
)

// Progress tells how far a file is that is fetched: a line at its beginning, after each ten seconds, and at its end.
func Progress(w io.Writer) func(name string, done, total int64) { return progressOf(w, "fetching") }

func progressOf(w io.Writer, doing string) func(name string, done, total int64) {
	last, told := "", int64(-1)
	var next time.Time
	return func(name string, done, total int64) {
		now := time.Now()
		if name == last && (done == told || now.Before(next) && done != total) {
			return
		}
		last, told, next = name, done, now.Add(10*time.Second)
		of := ""
		if total >= 0 {
			of = fmt.Sprintf(" of %.4g", float64(total)/1e6)
		}
		fmt.Fprintf(w, "%s %s: %.4g%s MB\n", doing, name, float64(done)/1e6, of)
	}
}
