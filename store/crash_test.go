package store

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The child of TestKillWhileWriting: it writes until it dies, and prints each
// blob that it was told is safe.
func TestMain(m *testing.M) {
	dir := os.Getenv("TALLY_STORE_CHILD")
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := Open(dir, roomy)
	if err != nil {
		panic(err)
	}
	for i := uint64(0); ; i++ {
		r, err := s.PutBytes(fmt.Sprint("lease-", i%3), crashBlob(i))
		if err != nil {
			panic(err)
		}
		fmt.Println(i, r)
		if i%5 == 4 {
			if _, err := s.GC(); err != nil {
				panic(err)
			}
		}
	}
}

func crashBlob(i uint64) []byte { return noise(i, int(i%4)*BlockSize/2+100) }

func TestKillWhileWriting(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for round := range 8 {
		dir := t.TempDir()
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "TALLY_STORE_CHILD="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		safe := map[uint64]Ref{}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var i uint64
			var text string
			if n, _ := fmt.Sscan(lines.Text(), &i, &text); n != 2 {
				break // cut off by the kill
			}
			r, err := ParseRef(text)
			if err != nil {
				break
			}
			safe[i] = r
			if len(safe) == 3+round {
				// Hit it at different places of the next Put.
				time.AfterFunc(time.Duration(round)*700*time.Microsecond, func() { cmd.Process.Kill() })
			}
		}
		cmd.Wait()
		if len(safe) < 3+round {
			t.Fatalf("round %d: the child wrote %d blobs", round, len(safe))
		}
		s := open(t, dir, roomy)
		for i, r := range safe {
			wantBlob(t, s, r, crashBlob(i))
		}
		// Blocks under their names are whole, though nobody was told of them.
		for d := range s.blocks {
			if _, err := s.read(d); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, tmpDir, "*")); len(left) != 0 {
			t.Errorf("temporary files: %v", left)
		}
		if _, err := s.GC(); err != nil {
			t.Fatal(err)
		}
		for i, r := range safe {
			wantBlob(t, s, r, crashBlob(i))
		}
	}
}
