package wire

import (
	"fmt"
	"regexp"
)

// Chain ids become names of files and are printed: so they have what every file system and terminal takes.
var chainID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$`)

// CheckChainID returns an error unless a text may be the id of a chain.
func CheckChainID(id string) error {
	if !chainID.MatchString(id) {
		return fmt.Errorf("chain id %.60q: want at most 50 letters, digits, dots, dashes and underscores", id)
	}
	return nil
}
