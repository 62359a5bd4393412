package grammar

// MakeMask is Mask, of which nothing is kept.
func (x *Index) MakeMask(state int) []byte { return x.mask(state) }
