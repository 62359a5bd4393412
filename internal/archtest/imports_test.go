package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// A layer says what the packages below a folder may import. The deepest layer
// that holds a package counts. A package may always import its own layer, unless that is
// alone.
type layer struct {
	folder string
	alone  bool     // imports nothing of the folders below it
	own    []string // folders of this repository
	// foreign are the modules outside the standard library; "*" stands for any.
	foreign []string
	std     []string // if set, the only packages of the standard library
	tests   []string // folders that only its tests may import
}

// pure is the part of the standard library that computes and does nothing else.
var pure = []string{
	"bytes", "cmp", "crypto/ed25519", "crypto/sha256", "encoding/binary", "encoding/hex", "errors", "fmt", "iter", "maps",
	"math", "math/bits", "path", "slices", "sort", "strconv", "strings", "unicode/utf8",
}

var (
	sdk    = []string{"cosmossdk.io", "github.com/cosmos", "github.com/cometbft/cometbft", "github.com/grpc-ecosystem/grpc-gateway", "google.golang.org/grpc"}
	libp2p = []string{"github.com/libp2p/go-libp2p", "github.com/multiformats", "go.uber.org/fx"} // fx: the only way to set how long a handshake may take
)

// Its decoders expand aliases, so whoever may import one refuses them first.
var yaml = []string{"go.yaml.in/yaml", "gopkg.in/yaml.v2", "gopkg.in/yaml.v3", "sigs.k8s.io/yaml", "github.com/goccy/go-yaml"}

// cpuRooms is the first n rooms of engine/cpu, and what they stand on.
func cpuRooms(n int) []string {
	rooms := []string{"tuning", "asm", "mem", "affine", "eltwise", "weights", "kernel", "gemm", "quantized", "attention", "spatial", "reduce", "recurrent", "fuse"}
	own := []string{"core/tensor"}
	for _, r := range rooms[:n] {
		own = append(own, "engine/cpu/"+r)
	}
	return own
}

// ofNode is what every package of node may use.
var ofNode = []string{
	"node", "core", "engine", "format", "store", "p2p", "gen", "internal/bounded", "internal/fetch", "internal/filelock", "internal/replace", "internal/scratch",
	"chain/app", "chain/wire", "chain/address", "chain/coin", "chain/event", "chain/vrf",
}

// layers is the one-way rule: cli → node → chain, store, p2p, engine, format →
// core; model stands on engine and format, below cli. Nothing imports what stands above it.
var layers = []layer{
	{folder: "core/canon", std: append([]string{"unsafe"}, pure...)},                               // what items of a list take in memory
	{folder: "core/tensor", own: []string{"core/canon"}, std: append([]string{"unsafe"}, pure...)}, // elements of a tensor are a view of its bytes
	{folder: "core/quant", own: []string{"core/canon", "core/tensor"}, std: pure},
	{folder: "core/graph", own: []string{"core/canon", "core/tensor"}, std: pure},
	{folder: "core/lower", own: []string{"core/canon", "core/tensor", "core/graph"}, std: pure, tests: []string{"core/op"}},                             // takes a table of operators, and knows none
	{folder: "core/op", own: []string{"core/tensor", "core/graph", "core/lower", "core/quant"}, std: pure, tests: []string{"core/canon", "core/train"}}, // gradients are tested as training uses them
	{folder: "core/record", own: []string{"core/canon", "core/tensor", "core/graph"}, std: pure, tests: []string{"core/lower", "core/op"}},              // graphs that take records apart are run
	{folder: "core/train", own: []string{"core/canon", "core/tensor", "core/graph", "core/lower", "core/op", "core/record"}, std: pure},
	{folder: "core/book", std: pure},
	{folder: "core/auction", own: []string{"core/beacon", "core/canon"}, std: pure, tests: []string{"bench/market"}}, // timed on the books that the figures are of
	{folder: "core/match", own: []string{"core/canon", "core/money"}, std: pure},
	{folder: "core/power", own: []string{"core/money"}, std: append([]string{"math/big"}, pure...)},   // a sum that is exact however long a chain runs
	{folder: "core/reserve", own: []string{"core/money"}, std: append([]string{"math/big"}, pure...)}, // parts of weights that grow without a bound
	{folder: "core/beacon", own: []string{"core/canon"}, std: pure},
	{folder: "core/sortition", own: []string{"core/beacon", "core/canon", "core/money"}, std: append([]string{"math/big"}, pure...)}, // odds of 256 bits, the same on every machine
	{folder: "core/erasure", own: []string{"core/canon", "core/tensor", "core/graph"}, std: pure},
	{folder: "core/proof", own: []string{"core/beacon", "core/canon", "core/tensor", "core/graph", "core/erasure"}, std: pure},
	{folder: "core/dispute", own: []string{"core/canon", "core/tensor", "core/graph", "core/record"}, std: pure},
	{folder: "core/session", own: []string{"core/canon", "core/money", "core/dispute"}, std: pure}, // knows no job
	{folder: "core/job", own: []string{"core"}, std: pure},
	{folder: "core", own: []string{"core"}, std: pure},

	// Rooms of the fast executor, bottom to top: what a tensor program is run fast with.
	{folder: "engine/cpu/tuning"}, // numbers alone
	{folder: "engine/cpu/asm", own: []string{"core/tensor", "core/quant"}, foreign: []string{"golang.org/x/sys", "github.com/klauspost/cpuid"}},
	{folder: "engine/cpu/mem", own: []string{"core/tensor", "engine/cpu/tuning"}, foreign: []string{"golang.org/x/sys"}}, // huge pages
	{folder: "engine/cpu/affine", own: cpuRooms(3)},
	{folder: "engine/cpu/eltwise", own: cpuRooms(3)}, // a loop over contiguous elements knows no axes
	{folder: "engine/cpu/weights", own: []string{"core/canon", "engine/cpu/mem", "internal/bounded"}, foreign: []string{"golang.org/x/sys"}}, // bytes by name, which no kernel knows
	{folder: "engine/cpu/kernel", own: []string{"core/tensor", "engine/cpu/mem", "engine/cpu/tuning", "engine/cpu/weights"}},                 // interfaces import no implementation
	{folder: "engine/cpu/gemm", own: cpuRooms(7)}, // kernels know each other through kernel alone
	{folder: "engine/cpu/quantized", own: append(cpuRooms(7), "core/quant")},
	{folder: "engine/cpu/attention", own: cpuRooms(7)},
	{folder: "engine/cpu/spatial", own: cpuRooms(7)},
	{folder: "engine/cpu/reduce", own: cpuRooms(7)},
	{folder: "engine/cpu/recurrent", own: cpuRooms(7)},
	{folder: "engine/cpu/fuse", own: append(cpuRooms(7), "core/graph")},                                         // takes producers as they come
	{folder: "engine/cpu/plan", own: append(cpuRooms(14), "core/canon", "core/graph", "core/op", "core/quant")}, // alone chooses kernels
	{folder: "engine/cpu/gen", foreign: []string{"github.com/mmcloughlin/avo"}},                                 // a module of its own
	{folder: "engine/merkle", own: []string{"core", "engine", "engine/cpu/asm", "engine/cpu/tuning"}},
	{folder: "engine/cpu", own: []string{"core", "engine"}},
	{folder: "engine", own: []string{"core"}, alone: true}, // an interface imports no implementation
	{folder: "internal/bounded"},
	{folder: "internal/fetch", own: []string{"internal/bounded"}},
	{folder: "internal/replace"},
	{folder: "internal/scratch", foreign: []string{"golang.org/x/sys"}}, // memory that lies in a file
	{folder: "internal/filelock", foreign: []string{"golang.org/x/sys"}},
	{folder: "format/yaml", foreign: yaml},
	{folder: "format/onnx", own: []string{"core", "format"}, foreign: []string{"google.golang.org/protobuf/encoding/protowire"}, tests: []string{"internal/bounded"}},
	{folder: "format/tokenizer", own: []string{"format"}, foreign: []string{"golang.org/x/text/unicode/norm", "github.com/rivo/uniseg"}}, // Unicode's normalization forms; its grapheme clusters
	{folder: "format/chat", own: []string{"format"}, foreign: []string{"golang.org/x/text/cases", "golang.org/x/text/language"}},         // Unicode's cases, as Python has them
	{folder: "format/source", own: []string{"core", "format", "internal/bounded"}},
	{folder: "format/parquet", own: []string{"core", "format"}, foreign: []string{"github.com/klauspost/compress"}}, // Snappy and zstd
	{folder: "format", own: []string{"core"}, foreign: []string{"google.golang.org/protobuf/encoding/protowire"}},
	{folder: "model/library", own: []string{"core/canon", "model/files", "model/lm", "model/encoder", "internal/bounded", "internal/fetch", "internal/filelock", "internal/replace"}, foreign: []string{"golang.org/x/net/html", "golang.org/x/sys"}, tests: []string{"core", "format"}}, // indices are pages; how full a disk is
	{folder: "model", own: []string{"core", "engine", "format", "internal/bounded"}},
	// What stands behind the gateway is given to it; of models it knows requests and tokens alone.
	{folder: "gateway/api"},
	{folder: "gateway/reply", own: []string{"gateway/api", "model/lm", "model/grammar", "format/chat", "format/tokenizer"}},
	{folder: "gateway/openai", own: []string{"gateway/api", "gateway/reply"}},
	{folder: "gateway/anthropic", own: []string{"gateway/api", "gateway/reply"}},
	{folder: "gateway/ollama", own: []string{"gateway/api", "gateway/reply"}},
	{folder: "gateway/local", own: []string{"gateway", "engine", "format", "model", "internal/bounded"}, tests: []string{"core"}},
	{folder: "gateway/network", own: []string{"gateway", "core/canon", "core/session", "model", "node/hire", "node/serve", "p2p"}}, // the one part of a gateway that knows the network
	{folder: "gateway", own: []string{"gateway", "format/yaml", "internal/bounded", "internal/replace"}, foreign: []string{"github.com/prometheus/client_golang", "github.com/rs/cors", "golang.org/x/sync/semaphore", "golang.org/x/time/rate"}, tests: []string{"model/lm"}},
	{folder: "store", own: []string{"core", "internal/bounded"}, foreign: []string{"github.com/ipfs/go-cid", "github.com/multiformats", "golang.org/x/sync"}},
	{folder: "p2p", own: []string{"core", "internal/bounded"}, foreign: slices.Concat(libp2p, []string{"github.com/ipfs/go-cid", "github.com/prometheus/client_golang"}), tests: []string{"store"}},
	{folder: "gen", foreign: slices.Concat(sdk, []string{"github.com/golang/protobuf", "google.golang.org/genproto"})},
	{folder: "chain/wire", own: []string{"core", "gen"}, foreign: []string{"github.com/cosmos"}},                                // knows no module
	{folder: "chain/x/work/terms", own: []string{"core"}, foreign: append([]string{"github.com/hashicorp/golang-lru"}, sdk...)}, // what was read is kept
	{folder: "chain", own: []string{"core", "gen"}, foreign: slices.Concat(sdk, []string{"github.com/oasisprotocol/curve25519-voi", "google.golang.org/protobuf/reflect/protoreflect", "google.golang.org/protobuf/encoding/protowire"}), tests: []string{"docs/spec"}},

	// Roles speak to the chain by messages, and need none of its modules.
	{folder: "node/tabs", own: append([]string{"model"}, ofNode...), foreign: []string{"*"}}, // language models are no jobs
	{folder: "node/contest", own: append([]string{"model"}, ofNode...), foreign: []string{"*"}},
	{folder: "node/serve", own: append([]string{"model"}, ofNode...), foreign: []string{"*"}},
	{folder: "node/hire", own: append([]string{"model"}, ofNode...), foreign: []string{"*"}},
	{folder: "node/demo/chat", own: append([]string{"model", "gateway"}, ofNode...), foreign: []string{"*"}},                                                                              // the whole way, from a client's HTTP to the chain
	{folder: "node/demo", own: append([]string{"model"}, ofNode...), foreign: []string{"*"}},                                                                                              // what is trained is served
	{folder: "node/devnet", own: append([]string{"chain/x/auction", "chain/x/policy", "chain/x/provider", "chain/x/seats"}, ofNode...), foreign: []string{"*"}, tests: []string{"chain"}}, // begins with the modules' rules
	{folder: "node/runner", own: append([]string{"chain/x/provider"}, ofNode...), foreign: []string{"*"}, tests: []string{"chain"}},                                                       // tells one of its errors from others
	{folder: "node/desk", own: append([]string{"chain/x/market"}, ofNode...), foreign: []string{"*"}, tests: []string{"chain"}},                                                           // tells one of its errors from others
	{folder: "node/consume/models", own: append([]string{"model/batch"}, ofNode...), foreign: []string{"*"}},                                                                              // what is delivered takes any batch
	{folder: "node/life", own: append([]string{"model/zoo"}, ofNode...), foreign: []string{"*"}, tests: []string{"chain"}},                                                                // people order trainings of a small model
	{folder: "node", own: ofNode, foreign: []string{"*"}, tests: []string{"chain"}},
	{folder: "bench", own: []string{"core", "engine", "format", "model", "store", "p2p", "gen", "chain", "node", "sim", "internal/bounded", "internal/cputime", "internal/scratch", "internal/testkit/adversary", "internal/testkit/barehost", "internal/testkit/headers", "internal/testkit/spam"}, foreign: []string{"*"}},
	{folder: "sim", own: []string{"core", "engine", "node/replay"}},
	{folder: "docs/spec"},
	{folder: "cli", own: []string{"docs/spec", "core", "engine", "format", "model", "store", "p2p", "gen", "chain/app", "chain/wire", "chain/address", "chain/coin", "node", "gateway", "bench", "sim", "internal/bounded", "internal/filelock", "internal/replace", "internal/scratch"}, foreign: []string{"*"}},
	{folder: "cmd", own: []string{"cli"}},
	{folder: "internal/cputime", foreign: []string{"golang.org/x/sys"}},
	{folder: "internal/testkit", own: []string{"core", "engine", "format", "model", "gateway", "store", "p2p", "gen", "chain", "node", "internal/cputime"}, foreign: []string{"*"}},
	{folder: "internal/e2e", tests: []string{"core", "engine", "format", "model", "store", "p2p", "gen", "chain", "node"}, foreign: []string{"*"}},
	{folder: "internal/archtest"},
	{folder: "internal/democheck"},
}

// Tests of every layer may also import these.
var forTests = layer{
	own:     []string{"internal/testkit", "engine"}, // an engine runs what core defines
	foreign: []string{"pgregory.net/rapid", "github.com/klauspost/reedsolomon", "github.com/rogpeppe/go-internal", "golang.org/x/tools", "go.uber.org/goleak"},
}

func TestImports(t *testing.T) {
	for _, f := range goFiles(t) {
		i := slices.IndexFunc(layers, func(l layer) bool { return under(f.dir, l.folder) })
		if i < 0 {
			t.Errorf("%s belongs to no layer: give its folder a place in layers", f.path)
			continue
		}
		l := layers[i]
		for _, p := range f.imports() {
			if why := l.refuses(p, f.test); why != "" {
				t.Errorf("%s imports %s: %s", f.path, p, why)
			}
		}
	}
}

func (l layer) refuses(p string, test bool) string {
	if own, ok := strings.CutPrefix(p, module+"/"); ok {
		if own == l.folder || !l.alone && under(own, l.folder) || under(own, l.own...) || test && under(own, append(l.tests, forTests.own...)...) {
			return ""
		}
		if under(own, "internal/testkit") {
			return "the testkit is for tests"
		}
		return "imports go one way, and " + l.folder + " may use " + strings.Join(append(l.own, "itself"), ", ") +
			"; what stands above it can then change without it"
	}
	if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
		if slices.Contains(l.foreign, "*") || under(p, l.foreign...) || test && under(p, forTests.foreign...) {
			return ""
		}
		return "this layer does without that module; if it has become worth the dependency, say so in layers"
	}
	if p == "testing" && !test && l.folder != "internal/testkit" {
		return "a program is no test: what it measures it takes from the testkit"
	}
	if l.std != nil && !test && !slices.Contains(l.std, p) {
		return "core computes and does nothing else: no input, output, clock, lock, log or chance"
	}
	return ""
}

// YAML is read by one function, and by settings, which ask it first.
func TestYAMLIsReadInOnePlace(t *testing.T) {
	for _, f := range goFiles(t) {
		if under(f.dir, "format/yaml") || f.path == "node/home/yaml.go" {
			continue
		}
		for _, p := range f.imports() {
			if under(p, yaml...) {
				t.Errorf("%s imports %s: format/yaml reads YAML, and refuses aliases, before they take memory", f.path, p)
			}
		}
	}
}

// The table itself must bite.
func TestLayersRefuse(t *testing.T) {
	of := func(folder string) layer {
		return layers[slices.IndexFunc(layers, func(l layer) bool { return l.folder == folder })]
	}
	for _, x := range []struct {
		folder, imports string
		test, refused   bool
	}{
		{"core/canon", path.Join(module, "core/tensor"), false, true},
		{"core/tensor", path.Join(module, "core/canon"), false, false},
		{"core/lower", path.Join(module, "core/op"), false, true},
		{"core/op", path.Join(module, "core/train"), false, true},
		{"core/job", path.Join(module, "gen/tally/work/v1"), true, true},
		{"core/job", "time", false, true},
		{"core/job", "time", true, false},
		{"chain", path.Join(module, "engine/cpu"), false, true},
		{"chain", path.Join(module, "node/role"), true, true},
		{"chain", path.Join(module, "chain/x/work"), false, false},
		{"engine/cpu/gemm", path.Join(module, "engine/cpu/fuse"), false, true},
		{"engine/cpu/gemm", path.Join(module, "engine/cpu/affine"), false, false},
		{"engine/cpu/kernel", path.Join(module, "engine/cpu/gemm"), false, true},
		{"engine/cpu/plan", path.Join(module, "engine/cpu"), false, true},
		{"engine", path.Join(module, "engine/cpu/asm"), false, true},
		{"chain/wire", path.Join(module, "chain/x/work"), false, true},
		{"node", path.Join(module, "chain/x/work"), false, true},
		{"node", path.Join(module, "chain/wire"), false, false},
		{"node/runner", path.Join(module, "chain/x/work"), false, true},
		{"node", path.Join(module, "cli"), false, true},
		{"node", path.Join(module, "internal/testkit/nettest"), false, true},
		{"node", path.Join(module, "internal/testkit/nettest"), true, false},
		{"node", "testing", false, true},
		{"store", "github.com/libp2p/go-libp2p/core/host", false, true},
		{"cmd", "github.com/spf13/cobra", false, true},
	} {
		if why := of(x.folder).refuses(x.imports, x.test); (why != "") != x.refused {
			t.Errorf("%s imports %s (test %v): %q", x.folder, x.imports, x.test, why)
		}
	}
}
