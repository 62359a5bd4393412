package auction

import "fmt"

// maxEnumerated is for how many tasks all sets of winners are tried.
const maxEnumerated = 20

// Optimum returns the greatest welfare that any clearing of a book has, with every set of winners tried: to compare rules
// with. Each set is served by whoever asks least.
func Optimum(b *Book) (best uint64, err error) {
	if len(b.Tasks) > maxEnumerated {
		return 0, fmt.Errorf("the optimum of %d tasks is not looked for: at most %d", len(b.Tasks), maxEnumerated)
	}
	var s stock
	r := ranker{b, Params{}, Standard}
	for kind := range s {
		s[kind] = supply{lots: b.lots[kind], sellers: r.sellers(kind)}
		for _, j := range s[kind].sellers {
			s[kind].add(j)
		}
	}
	for winners := range uint64(1) << len(b.Tasks) {
		var all Task
		for i := range b.Tasks {
			if winners>>i&1 == 1 {
				all.Budget += b.Tasks[i].net()
				for k, q := range b.Tasks[i].Demand {
					all.Demand[k] += q
				}
			}
		}
		if _, cost, ok := s.takeEach(&levels{}, &all, all.Budget); ok {
			best = max(best, all.Budget-cost)
		}
	}
	return best, nil
}
