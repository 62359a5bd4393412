package remote_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/node/consume/remote"
)

// gateway gives blocks, and counts them.
type gateway struct {
	*httptest.Server
	blocks map[string][]byte
	given  int
	fails  int // of how many requests nothing comes
}

func newGateway(t *testing.T) *gateway {
	g := &gateway{blocks: map[string][]byte{}}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := g.blocks[strings.TrimPrefix(r.URL.Path, "/ipfs/")]
		switch {
		case g.fails > 0:
			g.fails--
			http.Error(w, "later", http.StatusGatewayTimeout)
		case !ok || r.URL.RawQuery != "format=raw":
			http.NotFound(w, r)
		default:
			g.given++
			_, _ = w.Write(b)
		}
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gateway) cache(t *testing.T) *remote.Cache {
	n := fetch.New(func(string) string { return "" })
	n.Pause, n.Tries = time.Millisecond, 2
	return &remote.Cache{Dir: t.TempDir(), Net: n, Env: func(name string) string { return map[string]string{"IPFS_GATEWAY": g.URL + "/"}[name] }}
}

// put adds a block, of DAG-PB unless it is raw.
func (g *gateway) put(b []byte, codec uint64) cid.Cid {
	p := cid.Prefix{Version: 1, Codec: codec, MhType: multihash.SHA2_256, MhLength: 32}
	c, err := p.Sum(b)
	if err != nil {
		panic(err)
	}
	g.blocks[c.String()] = b
	return c
}

func number(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func text(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

// part is what a node holds.
type part struct {
	name string
	cid  cid.Cid
	size int
}

// node adds a node of UnixFS: links come first, as DAG-PB has them.
func (g *gateway) node(typ uint64, data []byte, total int, parts ...part) cid.Cid {
	var b []byte
	inner := number(nil, 1, typ)
	if data != nil {
		inner = text(inner, 2, data)
	}
	if total >= 0 {
		inner = number(inner, 3, uint64(total))
	}
	for _, p := range parts {
		b = text(b, 2, number(text(text(nil, 1, p.cid.Bytes()), 2, []byte(p.name)), 3, uint64(p.size)))
		if typ == 2 {
			inner = number(inner, 4, uint64(p.size))
		}
	}
	return g.put(text(b, 1, inner), cid.DagProtobuf)
}

// file adds a file in leaves of 1 kB, raw or of DAG-PB, three at a node.
func (g *gateway) file(data []byte, raw bool) cid.Cid {
	var level []part
	for at := 0; at < len(data); at += 1000 {
		leaf := data[at:min(at+1000, len(data))]
		if raw {
			level = append(level, part{"", g.put(leaf, cid.Raw), len(leaf)})
		} else {
			level = append(level, part{"", g.node(2, leaf, len(leaf)), len(leaf)})
		}
	}
	for len(level) > 1 {
		var above []part
		for i := 0; i < len(level); i += 3 {
			of, size := level[i:min(i+3, len(level))], 0
			for _, p := range of {
				size += p.size
			}
			above = append(above, part{"", g.node(2, nil, size, of...), size})
		}
		level = above
	}
	return level[0].cid
}

func TestFilesOfIPFS(t *testing.T) {
	g := newGateway(t)
	data := make([]byte, 20_500)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	for _, raw := range []bool{true, false} {
		c := g.cache(t)
		f := g.file(data, raw)
		folder := g.node(1, nil, -1, part{"README.md", g.put([]byte("#"), cid.Raw), 1}, part{"data.csv", f, len(data)})
		g.fails = 1
		for _, source := range []string{"ipfs:" + f.String() + "?filename=data.csv", "ipfs:" + folder.String() + "/data.csv", "ipfs://" + folder.String()} {
			brings(t, c, source, data)
		}
		given := g.given
		brings(t, c, "ipfs:"+f.String()+"?filename=data.csv", data)
		if g.given-given > 1 {
			t.Errorf("%d blocks were given again", g.given-given)
		}

		// What is there of it is not fetched again, unless it is wrong.
		c = g.cache(t)
		missing := g.put(data[15_000:16_000], cid.Raw).String()
		if !raw {
			missing = g.node(2, data[15_000:16_000], 1000).String()
		}
		block := g.blocks[missing]
		delete(g.blocks, missing)
		_, err := c.Fetch(t.Context(), "ipfs:"+folder.String())
		refuses(t, err, "404")
		g.blocks[missing] = block
		partial, err := filepath.Glob(filepath.Join(c.Dir, "*", "*.partial"))
		if err != nil || len(partial) != 1 {
			t.Fatalf("%q %v", partial, err)
		}
		b, err := os.ReadFile(partial[0])
		if err != nil || len(b) != 15_000 {
			t.Fatalf("%d bytes are there: %v", len(b), err)
		}
		b[3500]++
		if err := os.WriteFile(partial[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		given = g.given
		brings(t, c, "ipfs:"+folder.String(), data)
		if leaves := g.given - given; leaves > 24 { // 7 leaves, all nodes above them, and the folder
			t.Errorf("%d blocks were given again", leaves)
		}
	}
	shards := g.node(1, nil, -1, part{"train-00001-of-00002.csv", g.file([]byte("a\n1\n"), true), 4}, part{"train-00000-of-00002.csv", g.file([]byte("a\n0\n"), true), 4}, part{"test.csv", g.file([]byte("a\n"), true), 2})
	for _, source := range []string{"ipfs:" + shards.String(), "ipfs:" + shards.String() + "/train-*.csv"} {
		f, err := g.cache(t).Fetch(t.Context(), source)
		names, _ := filepath.Glob(f.Path)
		if err != nil || len(names) != 2 || f.Source != source || !strings.HasSuffix(names[0], "00000-train-00000-of-00002.csv") {
			t.Errorf("%+v %q %v", f, names, err)
		}
	}
}

func TestGatewaysAreNotTrusted(t *testing.T) {
	g := newGateway(t)
	good := g.file([]byte("a,b\n1,2\n"), true)
	swapped := g.file(bytes.Repeat([]byte("x"), 1500), true)
	for name, b := range g.blocks {
		if len(b) == 500 {
			g.blocks[name] = bytes.Repeat([]byte("y"), 500)
		}
	}
	sized := func(total, size int) cid.Cid { return g.node(2, nil, total, part{"", good, size}) }
	chain := part{"", good, 8}
	for range 40 {
		chain.cid = g.node(2, nil, 8, chain)
	}
	large := g.put(make([]byte, 3<<20), cid.Raw)
	for source, want := range map[string]string{
		"ipfs:" + swapped.String() + "?filename=a.csv":                     "has another hash",
		"ipfs:" + sized(8, 9).String() + "?filename=a.csv":                 "8 bytes are 9 of its parts",
		"ipfs:" + sized(9, 9).String() + "?filename=a.csv":                 "a part has 8 bytes, and 9 were promised",
		"ipfs:" + sized(0, 0).String() + "?filename=a.csv":                 "a part has 0 bytes",
		"ipfs:" + chain.cid.String() + "?filename=a.csv":                   "more than 32 deep",
		"ipfs:" + large.String() + "?filename=a.csv":                       "limit 2097152",
		"ipfs:" + sized(1<<40, 1<<40).String() + "?filename=a.csv":         "more than the limit",
		"ipfs:" + g.node(5, nil, -1).String():                              "lies in parts",
		"ipfs:" + g.node(4, nil, -1).String():                              "neither a file nor a folder",
		"ipfs:" + g.put([]byte("\x0a"), cid.DagProtobuf).String():          "no node of UnixFS",
		"ipfs:" + g.node(1, nil, -1, part{"..", good, 8}).String() + "/..": "no name of a file",
		"ipfs:" + g.node(1, nil, -1).String():                              "none of its files",
		"ipfs:" + g.node(1, nil, -1).String() + "/a.csv":                   `no "a.csv" in it`,
		"ipfs:" + good.String():                                            "append ?filename=",
		"ipfs:" + good.String() + "?filename=../a.csv":                     "no name of a file",
		"ipfs:" + good.String() + "?filename=%zz":                          "filename",
		"ipfs:x": "is no CID",
		"ipfs:QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG":              "404",
		"ipfs:bafyrmidbudghnxv6tzrwddgjxkxsbn2ldvrylfilznggr6rawqjrzvlmmq": "another kind",
	} {
		_, err := g.cache(t).Fetch(t.Context(), source)
		refuses(t, err, want)
		if err != nil && strings.Contains(err.Error(), "--allow") {
			t.Errorf("%v: nobody's credentials would help", err)
		}
	}
	// 40 levels of 64 links to one another are no more than the bytes that they claim.
	bomb := part{"", good, 8}
	for range 6 {
		var all []part
		for range 64 {
			all = append(all, bomb)
		}
		bomb = part{"", g.node(2, nil, 64*bomb.size, all...), 64 * bomb.size}
	}
	_, err := g.cache(t).Fetch(t.Context(), fmt.Sprintf("ipfs:%v?filename=a.csv", bomb.cid))
	refuses(t, err, "it has 549755813888 bytes, more than the limit")
}

// What kubo made of a folder is read block by block; testdata/kubo.sh made them.
func TestBlocksOfKubo(t *testing.T) {
	var made struct {
		Folders []string
		Text    string
		Blocks  map[string][]byte
	}
	b, err := os.ReadFile("testdata/kubo.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &made); err != nil {
		t.Fatal(err)
	}
	g := newGateway(t)
	g.blocks = made.Blocks
	for _, folder := range made.Folders {
		brings(t, g.cache(t), "ipfs:"+folder+"/deep/table.csv", []byte(made.Text))
		brings(t, g.cache(t), "ipfs:"+folder+"/deep", []byte(made.Text))
	}
	if len(made.Folders) != 2 || g.given < len(made.Blocks) {
		t.Errorf("%d folders, %d blocks of %d given", len(made.Folders), g.given, len(made.Blocks))
	}
}

// TALLY_IPFS names a source that the gateway of a node has, as testdata/kubo.sh says.
func TestRealIPFS(t *testing.T) {
	source := os.Getenv("TALLY_IPFS")
	if source == "" {
		t.Skip("TALLY_IPFS names no source")
	}
	f, err := (&remote.Cache{Dir: t.TempDir()}).Fetch(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(f.Path)
	for _, name := range names {
		b, err := os.ReadFile(name)
		t.Log(filepath.Base(name), len(b), sum(b), err)
	}
	if err != nil || len(names) == 0 {
		t.Error(err)
	}
}
