package cli

import (
	"fmt"

	"github.com/tally-network/tally/node/consume"
)

// money is a flag that takes an amount with its unit.
type money uint64

// String implements pflag.Value.
func (m *money) String() string { return fmt.Sprintf("%dutally", uint64(*m)) }

// Type implements pflag.Value.
func (m *money) Type() string { return "amount" }

// Set implements pflag.Value.
func (m *money) Set(text string) error {
	a, err := consume.ParseAmount(text)
	*m = money(a)
	return err
}
