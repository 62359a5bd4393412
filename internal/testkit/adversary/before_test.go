package adversary

import (
	"os/exec"
	"testing"
)

// What make adversary-before changes in this package, so that it plays the rules before
// the first fix, still fits the package as it is.
func TestBeforeStillApplies(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	apply := exec.Command(git, "apply", "--check", "internal/testkit/adversary/testdata/before/adapt.patch")
	apply.Dir = "../../.."
	if out, err := apply.CombinedOutput(); err != nil {
		t.Errorf("testdata/before/adapt.patch does not apply any more: adapt it and run make adversary-before\n%s", out)
	}
}
