package light

import (
	"encoding/json"
	"testing"
)

// FuzzParse reads what somebody calls a trusted block: what is taken is written and read the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"chain":"tally-1","height":7,"header":"5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f","time":"2030-01-01T02:00:42+02:00",` +
		`"validators":"5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f","next_validators":"5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f5b1f"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parse(text)
		if err != nil {
			return
		}
		b, err := json.Marshal(got)
		if err != nil {
			t.Skip(err) // a year of five digits
		}
		if again, err := parse(b); err != nil || again != got {
			t.Errorf("%+v is %+v: %v", got, again, err)
		}
	})
}
