package founding

import "github.com/tally-network/tally/node/home"

// Sign has the home's account sign a file, whatever it says.
func Sign(h *home.Home, f *File) (err error) {
	f.AccountKey, f.Signature, err = h.Attest(f.signed())
	return err
}
