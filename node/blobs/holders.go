package blobs

import (
	"slices"

	"github.com/tally-network/tally/core/job"
)

// HoldersOf returns who holds the checkpoints of a receipt: its provider, first, and
// the unit's custodians.
func HoldersOf(l *job.Lease, r *job.Receipt) []string {
	out := []string{r.Provider}
	attested := l.Units[r.Unit].Attested
	if f := l.Shown(r.Unit, r.Attempt); f != nil {
		attested = f.Unit.Attested
	}
	for _, a := range attested {
		if a.Stands() {
			out = append(out, a.Custodian)
		}
	}
	return out
}

// Custodians returns who has said on chain that it holds the order's files: the custodians of
// the files, and those of the units.
func Custodians(l *job.Lease) (out []string) {
	seen := map[string]bool{}
	add := func(account string) {
		if !seen[account] {
			seen[account] = true
			out = append(out, account)
		}
	}
	for _, k := range l.Files.Custodians {
		if k.Says == job.Had {
			add(k.Account)
		}
	}
	for i := range l.Units {
		for _, a := range l.Units[i].Attested {
			if a.Stands() {
				add(a.Custodian)
			}
		}
	}
	return out
}

// Holders returns the lead and the custodians of a lease's files.
func Holders(l *job.Lease) []string {
	out := Custodians(l)
	if lead := l.Lead(); lead != "" {
		out = append(out, lead)
	}
	return out
}

// maxSpare bounds who is asked for an order's files beside their custodians.
const maxSpare = 16

// Others returns who may have the order's files beside their custodians: the lead, who had
// them first, and whoever was drawn for a unit or has one. It is nobody until a quorum of
// custodians has said that the files can be had: what others then give, custodians have seen.
func Others(l *job.Lease) (out []string) {
	if l.Files.Said != job.Had {
		return nil
	}
	add := func(account string) {
		if account != "" && len(out) < maxSpare && !slices.Contains(out, account) {
			out = append(out, account)
		}
	}
	add(l.Lead())
	for i := range l.Units {
		u := &l.Units[i]
		for _, a := range u.Audits {
			add(a.Auditor)
		}
		for _, a := range u.Attested {
			add(a.Custodian)
		}
	}
	for _, p := range l.Providers {
		add(p.Account)
	}
	return out
}
