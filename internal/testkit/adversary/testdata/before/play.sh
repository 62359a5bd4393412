#!/bin/sh
# Plays the adversary on the commit before the first fix: this package, adapted to what
# that commit's rules have no name for. See docs/spec/adversary.md.
set -e
before=4145dd6
here=internal/testkit/adversary
top=$(git rev-parse --show-toplevel)
dir=$(mktemp -d)
trap 'git -C "$top" worktree remove --force "$dir/tally"; rm -rf "$dir"' EXIT
git -C "$top" worktree add --detach "$dir/tally" $before
cd "$dir/tally"
cp -r "$top/$here" internal/testkit/
cp -r "$top/internal/cputime" internal/
mkdir chain/wire
cp "$top/$here/testdata/before/wire.go.txt" chain/wire/wire.go
cp "$top/internal/testkit/worktest/training.go" internal/testkit/worktest/
sed -i 's/cost := w.step.Program.Cost()/flops, bytes := w.step.Cost()/; s/cost.FLOPs, cost.Bytes/uint64(flops), uint64(bytes)/' internal/testkit/worktest/training.go
sed -i -f "$top/$here/testdata/before/words.sed" $here/*.go
gofmt -w $here
git apply "$top/$here/testdata/before/adapt.patch" || {
	echo "adapt.patch no longer fits the package: adapt it" >&2
	exit 1
}
cp "$top/$here/testdata/before/before_test.go.txt" $here/before_test.go
cp "$top/$here/testdata/before/replica.go.txt" $here/replica.go
rm $here/replica_test.go $here/live.go
go test -count=1 -timeout 3h -v -run TestBefore ./$here
