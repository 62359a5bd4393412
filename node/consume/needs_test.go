package consume

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/match"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

func TestNeedsOfAnOrderFile(t *testing.T) {
	p0, p1 := chaintest.Named("p0").String(), chaintest.Named("p1").String()
	s, err := ParseSpec([]byte(minimal + `conditions:
  maxProviders: 8
  onlyProviders: [` + p1 + ", " + p0 + `]
  regions: [FR, DE]
  tags: [iso-27001, gdpr]
  privacy: discreet
  memory: 1.5GiB
  tier: B
  speed: 0.8TFLOP/s
  throughput: 20TFLOPS
  power: 2.5ut
  deadline: 2h
`))
	if err != nil {
		t.Fatal(err)
	}
	accounts := []string{p0, p1}
	if p1 < p0 {
		accounts = []string{p1, p0}
	}
	want := match.Needs{
		Accounts: accounts, Regions: []string{"DE", "FR"}, Tags: []string{"gdpr", "iso-27001"}, Privacy: match.Discreet, Memory: 3 << 29,
		Tier: "B", Speed: 8e11, Power: 2_500_000, Most: 8, Throughput: 2e13, Deadline: 7_200_000,
	}
	if got := s.Terms().Needs; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	for text, words := range map[string]string{
		"regions: [Germany]":                   "conditions: regions: region \"Germany\": write a country's two letters",
		"regions: DE":                          "line 3: conditions.regions",
		"tags: [GDPR]":                         "small letters",
		"tags: [gdpr, gdpr]":                   "named twice",
		"privacy: secret":                      "choose of public, discreet, enclosed",
		"memory: 16":                           "line 3: conditions.memory: 16: write it like 16GiB",
		"memory: 16 parsecs":                   "write it like 16GiB",
		"memory: 99999999TiB":                  "write it like 16GiB",
		"speed: -1TFLOP/s":                     "write it like 5TFLOP/s",
		"speed: 1.TFLOP/s":                     "write it like 5TFLOP/s",
		"power: 3":                             "write it like 2.5ut",
		"onlyProviders: [p0]":                  "conditions.onlyProviders: account \"p0\"",
		"deadline: 5m":                         "less than unitTimeout, 10m0s",
		"excludedRegions: [DE], regions: [DE]": "wanted and excluded",
		"region: DE":                           "region",
	} {
		if _, err := ParseSpec([]byte(minimal + "conditions: {" + text + "}\n")); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v does not say %q", text, err, words)
		}
	}
}
