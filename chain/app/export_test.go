package app

// TooDeep is txTooDeep for tests.
func TooDeep(raw []byte) bool { return txTooDeep(raw) }
