package graph

import "testing"

// An honest program stands, though its first node is of no use, and is opened twice.
func TestHonestProgramIsNotRefuted(t *testing.T) {
	p := sums(t)
	dead := p.Nodes[2] // neg constant
	dead.From = []Ref{{Kind: RefSlot}}
	p.Nodes = append([]Opcode{dead}, p.Nodes...)
	for i := range p.Nodes[1:] {
		n := &p.Nodes[i+1]
		from := append([]Ref(nil), n.From...)
		for j := range from {
			if from[j].Kind == RefNode {
				from[j].Index++
			}
		}
		n.From = from
	}
	p.Outputs = []Ref{{Kind: RefNode, Index: 4}}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	c := p.Commit()
	if c.Refute() != nil {
		t.Fatal("it lies")
	}
	x := c.Open(Opened{List: InNodes}, Opened{List: InNodes})
	if why, err := x.Judge(c.Root()); err == nil {
		t.Fatalf("an honest program is exposed: %s", why)
	}
}
