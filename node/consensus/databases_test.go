package consensus

import (
	"os"
	"path/filepath"
	"testing"

	cmtcfg "github.com/cometbft/cometbft/config"
)

// What CometBFT reads after its node has stopped is not there, instead of the
// error that it panics on.
func TestClosedDatabaseIsEmpty(t *testing.T) {
	conf := cmtcfg.DefaultConfig()
	conf.SetRoot(t.TempDir())
	dbs := &databases{}
	db, err := dbs.open(&cmtcfg.DBContext{ID: "blockstore", Config: conf})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Set([]byte("key"), []byte("value")); err != nil {
		t.Fatal(err)
	}
	if v, err := db.Get([]byte("key")); err != nil || string(v) != "value" {
		t.Fatalf("%q, %v", v, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if v, err := db.Get([]byte("key")); err != nil || v != nil {
		t.Fatalf("%q, %v", v, err)
	}
	if err := dbs.Close(); err != nil { // a second time
		t.Fatal(err)
	}
}

// A database that was killed while it was made is made again. One that has lost
// its entry point, but has data, is not touched.
func TestUnbornDatabaseIsMadeAgain(t *testing.T) {
	conf := cmtcfg.DefaultConfig()
	conf.SetRoot(t.TempDir())
	open := func(id string) error {
		if err := discardUnborn(conf.DBDir()); err != nil {
			t.Fatal(err)
		}
		dbs := &databases{}
		db, err := dbs.open(&cmtcfg.DBContext{ID: id, Config: conf})
		if err == nil {
			err = db.SetSync([]byte("key"), []byte("value"))
		}
		if e := dbs.Close(); e != nil {
			t.Fatal(e)
		}
		return err
	}
	in := func(id, name string) string { return filepath.Join(conf.DBDir(), id+".db", name) }
	for _, id := range []string{"whole", "unborn", "named", "damaged"} {
		if err := open(id); err != nil {
			t.Fatal(err)
		}
	}
	for id, gone := range map[string]string{"unborn": "[^M]*", "named": "[^M]*", "damaged": "CURRENT*"} {
		files, err := filepath.Glob(in(id, gone))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Killed between making the file that becomes the entry point, and writing it.
	if err := os.WriteFile(in("named", "CURRENT.0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for id, ok := range map[string]bool{"whole": true, "unborn": true, "named": true, "damaged": false} {
		if err := open(id); (err == nil) != ok {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := os.Stat(in("damaged", "")); err != nil {
		t.Errorf("the damaged database is gone: %v", err)
	}
}
