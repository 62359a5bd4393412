package unixfs_test

import (
	"context"
	"encoding/hex"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"

	"github.com/tally-network/tally/node/consume/remote/unixfs"
)

// nodes are blocks of files and folders, in hexadecimal.
var nodes = []string{
	"0a0a080212046162630a1804", // a file in one block
	"122c0a2401551220b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde912001804" + "0a06080218042004", // one part
	"0a020801", // an empty folder
	"0a0408021800", "0a06080218082a00", "1200", "0a",
}

// FuzzOpen reads arbitrary blocks: what it opens has as many bytes as its parts.
func FuzzOpen(f *testing.F) {
	for _, node := range nodes {
		b, err := hex.DecodeString(node)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	p := cid.Prefix{Version: 1, Codec: cid.DagProtobuf, MhType: multihash.SHA2_256, MhLength: 32}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := p.Sum(b)
		if err != nil {
			t.Fatal(err)
		}
		r := unixfs.Reader{Get: func(context.Context, cid.Cid) ([]byte, error) { return b, nil }}
		e, err := r.Open(t.Context(), c, "")
		if err == nil && (e.Bytes < 0 || !e.Folder && len(e.Names()) > 0) {
			t.Errorf("%+v", e)
		}
	})
}
