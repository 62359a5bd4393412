package parts

import (
	"fmt"
	"strings"

	"github.com/tally-network/tally/core/job"
)

// Viewers counts who was given what of an order's parts, as their leases name it.
type Viewers struct {
	workers, judges, askers map[string]map[int]bool // by account: the parts that it computes or leads, judges, or may ask for
	owners                  map[string]string       // by account, where one is declared
}

// NewViewers returns viewers of nothing.
func NewViewers() *Viewers {
	return &Viewers{map[string]map[int]bool{}, map[string]map[int]bool{}, map[string]map[int]bool{}, map[string]string{}}
}

// Add enters those that the lease of a part names now. Who was named before stays: what it was given, it has.
func (v *Viewers) Add(part int, l *job.Lease) {
	for i, pool := range []job.Pool{l.Providers, l.Auditors} {
		for _, p := range pool {
			enter(v.askers, p.Account, part)
			if p.Owner != "" {
				v.owners[p.Account] = p.Owner
			}
			if i == 0 {
				enter(v.workers, p.Account, part)
			}
		}
	}
	if lead := l.Leads[0].Account; l.LeadOwner != "" {
		v.owners[lead] = l.LeadOwner
	}
	for _, lead := range l.Leads[:l.LeadIndex+1] {
		enter(v.workers, lead.Account, part)
		enter(v.askers, lead.Account, part)
	}
	for _, c := range l.Files.Custodians {
		enter(v.judges, c.Account, part)
	}
	for i := range l.Units {
		for _, a := range l.Units[i].Attested {
			enter(v.judges, a.Custodian, part)
		}
		for _, a := range l.Units[i].Audits {
			enter(v.judges, a.Auditor, part)
		}
	}
}

func enter(m map[string]map[int]bool, account string, part int) {
	if account == "" {
		return
	}
	if m[account] == nil {
		m[account] = map[int]bool{}
	}
	m[account][part] = true
}

// Views says who sees what, as far as it was drawn. A judge is a custodian or an auditor.
type Views struct {
	Workers       int `json:"workers"`         // leads and providers
	WorkersOfMany int `json:"workers_of_many"` // that lead or compute more than one part
	Judges        int `json:"judges"`
	JudgesOfMany  int `json:"judges_of_many"` // that see more than one part: judged, led or computed
	Owners        int `json:"owners"`         // of all of these
	OwnersOfMany  int `json:"owners_of_many"` // whose peers together see more than one part
	AskersOfMany  int `json:"askers_of_many"` // who may ask for files of more than one part, drawn or not; challengers beside
}

// Views counts what was added.
func (v *Viewers) Views() Views {
	sees, owned := map[string]map[int]bool{}, map[string]map[int]bool{}
	for _, m := range []map[string]map[int]bool{v.workers, v.judges} {
		for account, of := range m {
			owner := account
			if o := v.owners[account]; o != "" {
				owner = o
			}
			for part := range of {
				enter(sees, account, part)
				enter(owned, owner, part)
			}
		}
	}
	out := Views{
		Workers: len(v.workers), WorkersOfMany: ofMany(v.workers), Judges: len(v.judges),
		Owners: len(owned), OwnersOfMany: ofMany(owned), AskersOfMany: ofMany(v.askers),
	}
	for account := range v.judges {
		if len(sees[account]) > 1 {
			out.JudgesOfMany++
		}
	}
	return out
}

func ofMany(m map[string]map[int]bool) (n int) {
	for _, of := range m {
		if len(of) > 1 {
			n++
		}
	}
	return n
}

// String says it to people.
func (v Views) String() string {
	b := &strings.Builder{}
	if v.WorkersOfMany == 0 {
		fmt.Fprintf(b, "Who computes: no one of %d leads and providers has more than one part.\n", v.Workers)
	} else {
		fmt.Fprintf(b, "Who computes: %d of %d leads and providers have MORE than one part: one moved to another validator, or stood in for a lead.\n", v.WorkersOfMany, v.Workers)
	}
	fmt.Fprintf(b, "Who judges: %d of %d judges see more than one part. Custodians and auditors are drawn among all validators.\n", v.JudgesOfMany, v.Judges)
	fmt.Fprintf(b, "Owners: %d of %d see more than one part by what their peers were given.\n", v.OwnersOfMany, v.Owners)
	fmt.Fprintf(b, "All of them see the model. Who is not drawn may still ask: %d peers for more than one part, and every challenger for all.\n", v.AskersOfMany)
	return b.String()
}
