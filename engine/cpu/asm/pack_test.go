package asm

import (
	"math/rand/v2"
	"testing"
)

func TestTurn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, s := range Sets() {
		if s.Turn == nil {
			continue
		}
		for blocks := 1; blocks < 4; blocks++ {
			terms, step := TurnRows*blocks, TurnRows+blocks-1
			src, dst := values(r, 9*terms, false), make([]float32, terms*step)
			rows := [TurnRows]int(r.Perm(TurnRows))
			for i := range rows {
				rows[i] = rows[i]*terms + r.IntN(3)
			}
			s.Turn(blocks, &dst[0], 4*step, &src[0], &rows)
			for i, x := range dst {
				want := float32(0)
				if i%step < TurnRows {
					want = src[rows[i%step]+i/step]
				}
				if x != want {
					t.Fatalf("%s, %d blocks: element %d is %v, want %v", s.Name, blocks, i, x, want)
				}
			}
		}
	}
}
