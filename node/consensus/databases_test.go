package consensus

import (
	"os"
	"path/filepath"
	"strings"
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
	for _, id := range []string{"whole", "unborn", "damaged"} {
		if err := open(id); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(conf.DBDir(), id+".db", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := filepath.Base(f)
			if id == "unborn" && !strings.HasPrefix(name, "MANIFEST-") || id == "damaged" && strings.HasPrefix(name, "CURRENT") {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for id, ok := range map[string]bool{"whole": true, "unborn": true, "damaged": false} {
		if err := open(id); (err == nil) != ok {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := os.Stat(filepath.Join(conf.DBDir(), "damaged.db")); err != nil {
		t.Errorf("the damaged database is gone: %v", err)
	}
}
