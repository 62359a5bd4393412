package archtest

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bad is what the checks must find: a line that breaks a rule names it.
const bad = `package proof

import (
	"maps"
	"math"
	"math/rand"
	"slices"
	"sync"
	"time"

	"github.com/tally-network/tally/core/canon"
)

var started = time.Now() // want clock

var lock sync.Mutex // want lock

// sync: a reason
var other sync.Mutex

var pause time.Duration = 3

const domain canon.Domain = "other" // want domain

func order(m map[string]int) (sum int) {
	for range m { // want map
		go order(nil) // want goroutine
	}
	for k := range maps.Keys(m) { // want map
		sum += m[k] + rand.Int() // want clock
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		sum += m[k]
	}
	for _, v := range m { // order: a sum of integers
		sum += v
	}
	clear(m)
	return sum
}

// all does with the channel what is explained for floats only.
//
// float: a reason
func all(x float32, c chan int) float32 { // want goroutine
	select { // want goroutine
	case c <- 1: // want goroutine
	default:
	}
	lock.Lock()
	return float32(math.Exp(1)) + x*x // want math
}

// float:
func fused(x, y float32) float32 { // want float
	z := x * y // want float // want fused
	z *= x // want float // want fused
	return z + float32(x*y) + 2*3 + float32(math.Sqrt(4)) // want float
}
`

var names = map[string]string{
	"clock": "differs between machines", "lock": "locks are for goroutines", "map": "maps have no order",
	"goroutine": "goroutines and channels", "math": "in every bit", "fused": "may be fused", "float": "floats round", "domain": "not in core/canon",
}

func TestChecksBite(t *testing.T) {
	at, err := filepath.Abs(filepath.Join(root, "core", "proof", "zz_bad.go"))
	if err != nil {
		t.Fatal(err)
	}
	p := load(t, map[string][]byte{at: []byte(bad)}, "./core/proof")[0]
	found := map[int][]string{}
	for _, c := range checksOf("core/proof") {
		c(p, func(n ast.Node, why string) {
			if pos := fset.Position(n.Pos()); pos.Filename == at {
				found[pos.Line] = append(found[pos.Line], why)
			}
		})
	}
	for i, line := range strings.Split(bad, "\n") {
		_, wants, _ := strings.Cut(line, "// want ")
		for _, want := range strings.Split(wants, " // want ") {
			hit := func(why string) bool { return strings.Contains(why, names[want]) }
			if want != "" && !slices.ContainsFunc(found[i+1], hit) {
				t.Errorf("line %d, %s: want %s, found %q", i+1, line, want, found[i+1])
			}
			found[i+1] = slices.DeleteFunc(found[i+1], hit)
		}
		if wants == "" && len(found[i+1]) > 0 {
			t.Errorf("line %d, %s: found %q", i+1, line, found[i+1])
		}
	}
}

func TestMachineLines(t *testing.T) {
	for line, want := range map[string]bool{
		`dir := "/home/ada/models"`: true, "cd /work/models": true, "`/tmp/x`": true, `C:\\models`: true, "(/root/models)": true,
		`import "tally/work/v1"`: false, "https://x.org/home/": false, "node/home/home.go": false, "tmp/": false,
	} {
		if machine.MatchString(line) != want {
			t.Errorf("%s: %v", line, !want)
		}
	}
}
