package job

import (
	"cmp"
	"slices"
)

// owner returns who owns a party: itself, if it has declared nobody.
func (p *Party) owner() string { return cmp.Or(p.Owner, p.Account) }

// ownerOf returns who owned a party of the lease when that began.
func (l *Lease) ownerOf(account string) string {
	for _, all := range []Pool{l.Providers, l.Auditors} {
		if p := find(all, account); p != nil {
			return p.owner()
		}
	}
	if account == l.Leads[0].Account {
		return cmp.Or(l.LeadOwner, account)
	}
	return account
}

// apart returns those of a pool that share no owner with any of some accounts.
func (l *Lease) apart(pool []Party, accounts ...string) []Party {
	owners := make([]string, len(accounts))
	for i, a := range accounts {
		owners[i] = l.ownerOf(a)
	}
	return without(pool, owners)
}

// without returns those of a pool that none of some owners owns.
func without(pool []Party, owners []string) []Party {
	return slices.DeleteFunc(slices.Clone(pool), func(p Party) bool { return slices.Contains(owners, p.owner()) })
}

// Owners returns how many owners some parties have.
func Owners(all []Party) int { return len(ownersOf(all)) }

// ownersOf returns the owners of some parties, in order.
func ownersOf(all []Party) []string {
	owners := make([]string, len(all))
	for i := range all {
		owners[i] = all[i].owner()
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}
