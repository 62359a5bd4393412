package app

// TooDeep is txTooDeep for tests.
func (a *App) TooDeep(raw []byte) bool { return a.Tx.(txConfig).txTooDeep(raw) }

// KnowsType reports whether the walk descends into an Any of a type.
func (a *App) KnowsType(url string) bool { return a.Tx.(txConfig).types[url] != nil }
