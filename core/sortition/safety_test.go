package sortition

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/tally-network/tally/core/beacon"
)

// badOfExactly returns the natural logarithm of the odds that a part f of all power has a third or more of so many seats.
func badOfExactly(seats uint64, f float64) float64 {
	mine, sum := logBinomial(seats, f), math.Inf(-1)
	for b := (seats + 2) / 3; b <= seats; b++ {
		sum = addLogs(sum, mine(b))
	}
	return sum
}

// badByLots is the same by lots, with τ seats on the mean. It adds up the odds of every number that the part wins, and that the
// others win at most twice as many.
func badByLots(tau uint64, f float64) float64 {
	const weight = 1 << 50
	p := float64(tau) / weight
	bad := uint64(math.Round(f * weight))
	mine, others := logBinomial(bad, p), logBinomial(weight-bad, p)
	sum, upTo := math.Inf(-1), others(0)
	for b, g := uint64(0), uint64(0); b <= 2*tau; b++ {
		for g < 2*b {
			g++
			upTo = addLogs(upTo, others(g))
		}
		sum = addLogs(sum, mine(b)+upTo)
	}
	return sum
}

// Lots may give a minority a third of the seats, by which it could halt the chain. With a thousand seats or more that does not
// happen. Run with -v, it prints how likely it is: by lots, of which the number varies, and of exactly τ seats.
func TestSafetyOfLots(t *testing.T) {
	parts := []float64{0.10, 0.20, 0.25}
	stated := map[uint64][3]float64{100: {7e-11, 7e-4, 2.8e-2}, 500: {0, 1.6e-12, 1.6e-5}, 1000: {0, 0, 1.7e-9}, 2000: {0, 0, 4e-17}}
	t.Log("odds that a part f of all power has a third of the seats or more: by lots | of exactly τ seats | the same as the design began with")
	for _, tau := range []uint64{100, 500, 1000, 2000, 5000} {
		line := fmt.Sprintf("τ = %-4d", tau)
		for i, f := range parts {
			byLots, exactly, said := badByLots(tau, f)/math.Ln10, badOfExactly(tau, f)/math.Ln10, "-"
			if want := stated[tau][i]; want > 0 {
				said = fmt.Sprintf("%.1e", want)
				if math.Abs(exactly-math.Log10(want)) > math.Log10(2) {
					t.Errorf("τ = %d, f = %.2f: 10^%.2f of exactly τ seats, stated %.1e", tau, f, exactly, want)
				}
			}
			if byLots < exactly {
				t.Errorf("τ = %d, f = %.2f: less likely by lots, whose number varies, than of exactly τ", tau, f)
			}
			line += fmt.Sprintf("   f = %.2f: %-8s | %-8s | %-7s", f, scientific(byLots), scientific(exactly), said)
		}
		t.Log(line)
	}
}

// The odds by lots are those of all numbers of seats that there may be, and what is drawn bears them out.
func TestOddsOfABadThird(t *testing.T) {
	const tau, f, weight, runs = 60, 0.25, 1 << 50, 8000
	all, mixed := logBinomial(weight, float64(tau)/weight), math.Inf(-1)
	for s := range uint64(6 * tau) {
		mixed = addLogs(mixed, all(s)+badOfExactly(s, f))
	}
	want := math.Exp(badByLots(tau, f))
	if off := math.Abs(math.Exp(mixed)/want - 1); off > 1e-6 {
		t.Errorf("odds are %g by lots, %g over all numbers of seats", want, math.Exp(mixed))
	}
	l, bad := Lottery{tau, weight}, 0
	for r := range uint64(runs) {
		mine, others := l.Won(weight/4, lots(2*r)), l.Won(weight-weight/4, lots(2*r+1))
		if 2*mine >= others {
			bad++
		}
	}
	t.Logf("drawn %d times of %d, odds %.4f", bad, runs, want)
	if sigma := math.Sqrt(runs * want * (1 - want)); math.Abs(float64(bad)-runs*want) > 4.5*sigma {
		t.Errorf("a quarter of the power had a third of the seats %d times of %d, want %.0f ± %.0f", bad, runs, runs*want, sigma)
	}
}

// scientific writes a number by its decimal logarithm, as it may be too small for a float.
func scientific(log float64) string {
	e := math.Floor(log)
	return fmt.Sprintf("%.1fe%.0f", math.Pow(10, log-e), e)
}

// Whatever the powers are, a member's part of the seats is its part of the power, on the mean. TALLY_EPOCHS says how many
// epochs are played.
func TestSeatsTrackPower(t *testing.T) {
	epochs := uint64(100_000)
	if s := os.Getenv("TALLY_EPOCHS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		epochs = n
	}
	const members = 4
	var gained, variance [members]float64
	powers, numbers := beacon.Lots("powers"), beacon.Lots("numbers")
	for e := range epochs {
		var power, won [members]uint64
		var all, seats uint64
		for i := range power {
			power[i] = 1 + powers.Below(e*members+uint64(i), 1<<(10+10*i))
			all += power[i]
		}
		l := Lottery{Seats: 1 + numbers.Below(e, min(40, all/2)), Weight: all}
		for i, w := range power {
			won[i] = l.Won(w, lots(e*members+uint64(i)))
			seats += won[i]
		}
		if seats == 0 {
			continue
		}
		for i, w := range power {
			f := float64(w) / float64(all)
			gained[i] += float64(won[i])/float64(seats) - f
			variance[i] += f * (1 - f) / float64(seats)
		}
	}
	for i := range gained {
		sigma := math.Sqrt(variance[i])
		t.Logf("member %d: seats are %+.6f of all above its power on the mean of %d epochs, %+.1f sigma", i, gained[i]/float64(epochs), epochs, gained[i]/sigma)
		if math.Abs(gained[i]) > 5*sigma {
			t.Errorf("member %d has %.1f sigma more than its part", i, gained[i]/sigma)
		}
	}
}

// Who may choose the best of k lots, as a proposer who withholds may, gains as much as the best of k normal numbers says:
// sqrt((1 − f) / (f · τ)) of its part for each sigma. Run with -v, it prints both.
func TestWithholdingGainsLittle(t *testing.T) {
	const runs, weight = 1500, 1 << 40
	sigmas := map[int]float64{1: 0, 2: 1 / math.Sqrt(math.Pi), 4: 1.02938} // the greatest of k normal numbers, on the mean
	next := uint64(0)
	for _, tau := range []uint64{250, 1000} {
		for _, f := range []float64{0.1, 0.25, 1. / 3} {
			own := uint64(f * weight)
			l := Lottery{tau, weight}
			gain := map[int]float64{}
			for range runs {
				best := 0.0
				for k := 1; k <= 4; k++ {
					mine, others := l.Won(own, lots(next)), l.Won(weight-own, lots(next+1))
					next += 2
					if best = max(best, float64(mine)/float64(mine+others)); k != 3 {
						gain[k] += (best/f - 1) / runs
					}
				}
			}
			unit := math.Sqrt((1 - f) / (f * float64(tau)))
			line := fmt.Sprintf("τ = %-5d f = %.2f", tau, f)
			for _, k := range []int{1, 2, 4} {
				bound := sigmas[k] * unit
				line += fmt.Sprintf("   best of %d: %+6.2f %% (normal %5.2f %%)", k, 100*gain[k], 100*bound)
				if off := math.Abs(gain[k] - bound); off > 0.03*bound+5*unit/math.Sqrt(runs) {
					t.Errorf("τ = %d, f = %.2f: the best of %d gains %.2f %%, want about %.2f %%", tau, f, k, 100*gain[k], 100*bound)
				}
			}
			t.Log(line)
		}
	}
}
