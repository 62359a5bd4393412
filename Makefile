# What can be done with this repository. `make` lists it.
.DEFAULT_GOAL := help
.PHONY: help demo demo-chat build test lint gofmt vet staticcheck staticcheck-tests proto-check unit demo-check test-arm64 test-v3 fuzz blocks faults adversary adversary-before histories byzantine book coalitions scenarios soak siege race bench bench-peers bench-formats bench-pair kernels proto python python-test room
export CGO_ENABLED = 0

# Arguments of tally demo; time for each fuzz target; time and first seed of the
# adversary; histories; orders of each coalition; conformance cases for each
# function; random disputes; kills in each soak loop, and orders at once; parts of runs that
# are recomputed alone.
ARGS     ?=
FUZZTIME ?= 30s
FUZZCASES ?= 1000000
CASES    ?= 200
GAMES    ?= 100000
ADVERSARY ?= 10m
BUDGET   ?= 1000
SEED     ?= 0
SOAK     ?= 20
ORDERS   ?= 200
BLOCKS   ?= 4000000
HISTORIES ?= 50

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

# What compiling may take in Go's caches.
SPACE_MB       = 4000
test: SPACE_MB = 8000

# Our own packages, without the generated ones.
OWN = $$(go list ./... | grep -v /gen/)

# Compilers and staticcheck spend up to half of their time on collecting what memory has room for.
lint vet staticcheck staticcheck-tests: export GOGC ?= 400
unit: export GOGC ?= 200

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## Run two orders on a whole network in one process (ARGS="--cheat none", …)
	@bin/tally demo $(ARGS)

demo-chat: build ## Have strangers serve a language model, one of whom cheats (ARGS="--stay", …)
	@bin/tally demo chat $(ARGS)

build: room ## Compile bin/tally
	@go build -o bin/tally ./cmd/tally

test: room ## Everything that CI runs
	@for step in build lint proto-check unit demo-check; do \
		echo "== $$step" && begun=$$(date +%s) && \
		$(MAKE) --no-print-directory SPACE_MB=0 $$step && \
		echo "== $$step took $$(($$(date +%s) - begun)) s" || exit 1; \
	done

lint: gofmt vet staticcheck ## Check form and common mistakes

gofmt: ## Check the form of the source
	@bad=$$(gofmt -l .) && [ -z "$$bad" ] || { echo "run gofmt -w on: $$bad"; exit 1; }

vet: ## Run go vet
	@go vet ./...

# Of what is used by tests alone it says so. Reading the tests as well takes ten times as long.
staticcheck: ## Run staticcheck on all but the tests
	@go run $(STATICCHECK) -tests=false $(OWN)

staticcheck-tests: room ## Run staticcheck on the tests as well
	@go run $(STATICCHECK) $(OWN)

# lint vets, and nobody debugs these binaries: both would take minutes. Tests of networks wait more than they compute, so that a third
# package fills two cores.
unit: ## Run the Go tests
	@go test -p 3 -vet=off -ldflags=-w -timeout 20m ./...

# The second program is built without the network; the first run has one thread. Both wait more than they compute, and run at once.
demo-check: ## Run the demo with and without a cheater, and check what they report
	@rm -rf bin/check && mkdir -p bin/check
	@GOPROXY=off $(MAKE) --no-print-directory build
	@GOMAXPROCS=1 bin/tally demo --json --cheat none --dir bin/check/honest >bin/check/honest.json & honest=$$!; \
		bin/tally demo --json --dir bin/check/cheated >bin/check/cheated.json; cheated=$$?; \
		wait $$honest && exit $$cheated
	@go run ./internal/democheck bin/tally bin/check/honest.json bin/check/cheated.json

# Where a compiler may fuse products with sums, which it must not do here.
test-arm64: ## Run the tests of core and engine as arm64, under qemu (qemu-user-static)
	@command -v qemu-aarch64-static >/dev/null || { echo "qemu-aarch64-static is missing: apt-get install qemu-user-static" >&2; exit 1; }
	GOARCH=arm64 go test -short -timeout 1h -exec qemu-aarch64-static ./core/... ./engine/...

test-v3: ## Run them on amd64 with fused multiply-add (GOAMD64=v3)
	GOAMD64=v3 go test -short -timeout 30m ./core/... ./engine/...

fuzz: ## Fuzz every target for FUZZTIME, and draw CASES conformance cases a function
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|/[^/]*:func | |' | while read -r dir target; do \
		echo "== $$dir $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" </dev/null || exit 1; \
	done
	TALLY_CONFORM_CASES=$(CASES) go test -count=1 -timeout 2h ./engine/cpu

blocks: ## Recompute BLOCKS random parts of every operator's run alone, and count them
	@mkdir -p bin
	@TALLY_BLOCKS=$(BLOCKS) go test -count=1 -timeout 2h -v -run PartsRecomputed ./core/op >bin/blocks.txt; \
		failed=$$?; grep -v -e '^ *--- PASS' -e '^=== ' bin/blocks.txt; exit $$failed

faults: ## Put a fault into every node of real training steps, and play GAMES random disputes
	TALLY_FAULTS=all TALLY_GAMES=$(GAMES) go test -count=1 -timeout 2h -v ./internal/testkit/faults ./core/dispute -run 'Fault|Lies|Random'

adversary: ## Let an adversary write attacks for ADVERSARY, from SEED on, and shrink what it finds
	TALLY_ADVERSARY=$(ADVERSARY) TALLY_SEED=$(SEED) go test -count=1 -timeout 3h -v ./internal/testkit/adversary -run 'TestAdversary|TestScripts'

adversary-before: ## Let the adversary find what the commit before the first fix was open to; TALLY_SEEDS=from:to searches
	sh internal/testkit/adversary/testdata/before/play.sh

histories: ## Replay, kill and restore nodes over HISTORIES random histories, from SEED on
	TALLY_HISTORIES=$(HISTORIES) TALLY_SEED=$(SEED) go test -count=1 -timeout 2h -v -run '^TestHistories' ./chain/app ./node/statesync

byzantine: ## Let a third of the power of a hundred thousand accounts cheat in every way at once, for a hundred epochs
	TALLY_BYZANTINE=1 go test -count=1 -timeout 2h -v -run '^TestAThirdCheats$$' ./internal/testkit/byzantine

book: ## Play a million events on a market of a hundred thousand entries, against a slow one
	TALLY_BOOK=100000:1000000 go test -count=1 -timeout 2h -v -run TestBookAgainstASlowOne ./chain/x/market

coalitions: ## Let coalitions of up to four roles search for what pays, BUDGET orders each, from SEED on
	go run ./cmd/tally sim coalitions --budget $(BUDGET) --seed $(SEED)

# Every set of instructions that this machine has, against the definition.
fuzz-engine: ## Compare the executor with the definition on FUZZCASES small cases
	TALLY_FUZZ_CASES=$(FUZZCASES) go test -count=1 -timeout 6h -v -run ManySmallCases ./engine/cpu

# Elementary functions on all floats, in every set of instructions: an hour.
sweep: ## Compare functions of one float32 with their definition on all 2^32
	TALLY_EXHAUSTIVE=1 go test -count=1 -timeout 12h -v -run VectorsOfOneOperand ./engine/cpu/eltwise

scenarios: ## Play all scenarios of whole networks, with those that CI leaves out
	TALLY_SCENARIOS=all go test -count=1 -timeout 1h ./internal/e2e

soak: ## Settle ORDERS at once while roles are killed; then kill and restart networks SOAK times
	TALLY_SOAK_ORDERS=$(ORDERS) go test -count=1 -timeout 30m -v -run '^TestSoak$$' ./internal/e2e
	TALLY_SOAK=$(SOAK) go test -count=1 -timeout 4h -v -run 'Kill|Crash|Lazy' $(OWN)

siege: ## Besiege whole networks with strangers, liars and silence
	TALLY_SIEGE=1 go test -count=1 -timeout 1h -v -run 'Siege|LyingCustodians|CustodianOfFiles|Strangers' ./p2p ./internal/testkit/nettest

# The race detector needs cgo, and so a C compiler.
race: ## Run the concurrent packages under Go's race detector
	CGO_ENABLED=1 go test -race -short -count=1 -timeout 1h ./engine ./engine/merkle ./store ./p2p ./node/client ./node/consensus ./node/leases ./node/blobs ./node/jobs ./node/states ./node/tasks

bench: build ## Measure: every name of tally bench, then the hot packages
	@for name in $$(bin/tally __complete bench '' 2>/dev/null | grep -v '^:' | cut -f1); do \
		echo "== tally bench $$name"; bin/tally bench "$$name" || exit 1; \
	done
	go test -run '^$$' -bench . -benchmem ./core/... ./engine/... ./format/... ./bench

# MODELS is a folder of ONNX models; those that bench/peers exports unless it is given.
MODELS ?= .cache/models
bench-peers: build .cache/peers/done $(filter .cache/models,$(MODELS)) ## Compare the engine with NumPy, PyTorch, JAX and onnxruntime (MODELS=DIR, PEERS="--only gemm")
	.cache/peers/bin/python bench/peers/compare.py --tally bin/tally --models "$(MODELS)" $(PEERS)

bench-formats: build .cache/peers/done ## Compare reading of text, tables and tensors with pandas, pyarrow and tokenizers
	.cache/peers/bin/python bench/peers/formats.py bin/tally .cache/formats $(PEERS)

bench-pair: build .cache/peers/done ## Compare bin/tally with another binary, OLD, row by row (PEERS="--only train")
	.cache/peers/bin/python bench/peers/paired.py --models "$(MODELS)" $(PEERS) "$(OLD)" bin/tally

# PyTorch is installed without the GPU libraries that it asks for.
.cache/peers/done: bench/peers/requirements.txt bench/peers/torch.txt bench/peers/gpuless.py
	python3 -m venv .cache/peers
	.cache/peers/bin/pip install --quiet -r bench/peers/requirements.txt
	.cache/peers/bin/pip install --quiet --no-deps -r bench/peers/torch.txt
	.cache/peers/bin/python bench/peers/gpuless.py
	@touch $@

.cache/models: .cache/peers/done bench/peers/models.py
	.cache/peers/bin/python bench/peers/models.py $@
	@touch $@

kernels: ## Generate the assembly of engine/cpu/asm
	go generate ./engine/cpu/asm

python: ## Build the wheel of the Python package into bin/python
	@rm -rf bin/python && python3 -m pip wheel --quiet --no-deps --wheel-dir bin/python ./python
	@ls bin/python/*.whl

# PyTorch is installed as for bench-peers, without its GPU libraries. Then pip says that these are missing; they are.
PYTHON_TEST = .cache/python-test/bin/python
python-test: build python ## Test the wheel in a fresh virtual environment, its guide on a devnet included
	rm -rf .cache/python-test && python3 -m venv .cache/python-test
	$(PYTHON_TEST) -m pip install --quiet "$$(ls bin/python/*.whl)[torch]" -r python/tests/requirements.txt
	$(PYTHON_TEST) -m pip install --quiet --no-deps -r bench/peers/torch.txt
	$(PYTHON_TEST) bench/peers/gpuless.py
	$(PYTHON_TEST) -m mypy --config-file python/pyproject.toml python/tally
	$(PYTHON_TEST) -m pytest -q python/tests

proto: ## Generate gen/ from proto/; needs protoc 3.21 (protobuf-compiler)
	@./proto/generate.sh gen

proto-check: ## Check that gen/ is what proto/ generates
	@command -v protoc >/dev/null || { echo "protoc is missing: gen/ is not checked"; [ -z "$$TALLY_REQUIRE_PROTOC" ]; exit; }; \
	tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && ./proto/generate.sh "$$tmp" && diff -r gen "$$tmp"

# Before the first compilation: is there a compiler, and room for its caches?
room:
	@command -v go >/dev/null || { echo "Tally needs Go 1.26.5 or newer: https://go.dev/dl" >&2; exit 1; }
	@[ -e bin/tally ] || [ $(SPACE_MB) = 0 ] || { \
		echo "The first build takes some minutes, and a few GB in Go's caches." >&2; \
		for dir in "$$(go env GOCACHE)" "$$(go env GOMODCACHE)"; do \
			mkdir -p "$$dir" || exit 1; \
			free=$$(df -Pk "$$dir" | awk 'NR == 2 { print int($$4 / 1024) }'); \
			[ "$$free" -ge $(SPACE_MB) ] || { \
				echo "$$dir has $$free MB free, and $(SPACE_MB) are needed." >&2; \
				echo "Make room there (go clean -cache empties the caches of builds), or set GOCACHE and GOMODCACHE to directories with room. SPACE_MB=0 skips this check." >&2; \
				exit 1; }; \
		done; }
