package adversary

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Script is a history: who is hostile, and what hostile people do.
type Script struct {
	World   Kind             `json:"world"`
	Found   string           `json:"found,omitempty"`  // what it showed when it was written
	Orders  []string         `json:"orders,omitempty"` // honest accounts that post an order in the first block
	Pick    int              `json:"pick,omitempty"`   // what kind of order these are
	Hostile map[string]Habit `json:"hostile,omitempty"`
	Blocks  []Block          `json:"blocks,omitempty"`
}

// Habit is how a hostile account does what an honest one would do by itself.
type Habit struct {
	Skip     []string `json:"skip,omitempty"`     // messages that it leaves out; "*": all
	Lie      bool     `json:"lie,omitempty"`      // it computes something else
	Withhold bool     `json:"withhold,omitempty"` // it hands the data of its work to nobody
	Forge    int      `json:"forge,omitempty"`    // which state of its results is forged: a checkpoint, or one within a segment; 0: none
}

// Block is a block, or some that are alike.
type Block struct {
	Wait  int64 `json:"wait"`            // ms since the block before
	Times int   `json:"times,omitempty"` // 0: once
	Ops   []Op  `json:"ops,omitempty"`
}

// Op is a message of a hostile account. What it is about is named by place, and
// found out when it is sent.
type Op struct {
	By    string   `json:"by"`
	Msg   string   `json:"msg"` // full name without package's "tally." and version, as "work.MsgSubmit"
	Order int      `json:"order,omitempty"`
	Unit  int      `json:"unit,omitempty"`
	Pick  int      `json:"pick,omitempty"`  // among what could be meant
	Bend  []string `json:"bend,omitempty"`  // path=value
	Times int      `json:"times,omitempty"` // 0: once
}

func (o *Op) times() int { return max(o.Times, 1) }

// String describes an op in a line.
func (o Op) String() string {
	s := fmt.Sprintf("%s: %s order %d unit %d", o.By, o.Msg, o.Order, o.Unit)
	if len(o.Bend) > 0 {
		s += " with " + strings.Join(o.Bend, ", ")
	}
	return s
}

// Size counts the messages of hostile people, and what they leave out.
func (s *Script) Size() (n int) {
	for _, b := range s.Blocks {
		for _, o := range b.Ops {
			n += o.times() * max(b.Times, 1)
		}
	}
	return n
}

// Load reads a script.
func Load(file string) (s Script, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// Text returns the script as files hold it.
func (s *Script) Text() []byte {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		panic(err) // strings and numbers
	}
	return append(b, '\n')
}

func (s Script) clone() Script {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	var c Script
	if err := json.Unmarshal(b, &c); err != nil {
		panic(err)
	}
	return c
}
