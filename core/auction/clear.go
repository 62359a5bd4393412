package auction

// finder clears one book by several measures. Who sells cheapest does not depend on them.
type finder struct {
	b       *Book
	p       Params
	sellers [Kinds][]uint32

	out  *Outcome // of the best that it has found
	cert *Certificate
}

func newFinder(b *Book, p Params) (*finder, error) {
	if err := p.applies(b); err != nil {
		return nil, err
	}
	f := &finder{b: b, p: p}
	for kind := range f.sellers {
		f.sellers[kind] = ranker{b, p, Standard}.sellers(kind)
	}
	return f, nil
}

// try clears by a measure, and says whether that is the best so far.
func (f *finder) try(m Measure) (better bool, err error) {
	if err := m.check(f.p.Rule); err != nil {
		return false, err
	}
	cert := &Certificate{Measure: m, Tasks: ranker{f.b, f.p, m}.tasks(), Sellers: f.sellers}
	c, err := newChecker(f.b, f.p, cert)
	if err != nil {
		return false, err
	}
	if err := c.run(); err != nil {
		return false, err
	}
	cert.Welfare, cert.Trades = c.out.Welfare, uint32(len(c.out.Trades))
	if f.cert != nil && !cert.Better(f.cert) {
		return false, nil
	}
	f.out, f.cert = &c.out, cert
	return true, nil
}

// Clear clears a book by one measure.
func Clear(b *Book, p Params, m Measure) (*Outcome, *Certificate, error) {
	f, err := newFinder(b, p)
	if err != nil {
		return nil, nil, err
	}
	if _, err := f.try(m); err != nil {
		return nil, nil, err
	}
	return f.out, f.cert, nil
}

// Fallback clears a book as it is cleared when nobody posts a better certificate: by the standard weights; under
// Midpoint, in whichever shape is best.
func Fallback(b *Book, p Params) (*Outcome, *Certificate, error) {
	f, err := newFinder(b, p)
	if err != nil {
		return nil, nil, err
	}
	if err := f.shapes(); err != nil {
		return nil, nil, err
	}
	return f.out, f.cert, nil
}

func (f *finder) shapes() error {
	for s := range shapes {
		if f.p.Rule != Midpoint && s > 0 {
			break
		}
		if _, err := f.try(Measure{s, Standard.Weight}); err != nil {
			return err
		}
	}
	return nil
}

// Search looks for a better measure than the fallback has, and stops after so many that it has tried. In each shape it
// doubles or halves one weight at a time, as long as that helps.
func Search(b *Book, p Params, tries int) (*Outcome, *Certificate, error) {
	f, err := newFinder(b, p)
	if err != nil {
		return nil, nil, err
	}
	if err := f.shapes(); err != nil {
		return nil, nil, err
	}
	tries -= int(shapes)
	for s := Shape(0); s < ByBid && p.Rule == Midpoint; s++ { // the greatest bid is first whatever it demands
		own := finder{b: b, p: p, sellers: f.sellers}
		if err := own.climb(Measure{s, Standard.Weight}, tries/int(ByBid)); err != nil {
			return nil, nil, err
		}
		if own.cert != nil && own.cert.Better(f.cert) {
			f.out, f.cert = own.out, own.cert
		}
	}
	return f.out, f.cert, nil
}

// climb tries the neighbours of a measure, and goes on from each that is better.
func (f *finder) climb(m Measure, tries int) error {
	if tries <= 0 {
		return nil
	}
	if _, err := f.try(m); err != nil {
		return err
	}
	tries--
	for stale := 0; stale < 2*Kinds; {
		for k := 0; k < Kinds && stale < 2*Kinds; k++ {
			for _, w := range []uint16{m.Weight[k] * 2, m.Weight[k] / 2} {
				if stale++; f.b.supply[k] == 0 || w == 0 || w > 1<<10 {
					continue
				}
				if tries--; tries < 0 {
					return nil
				}
				next := m
				next.Weight[k] = w
				better, err := f.try(next)
				if err != nil {
					return err
				}
				if better {
					m, stale = next, 0
					break
				}
			}
		}
	}
	return nil
}
