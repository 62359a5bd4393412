package consensus

import (
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
