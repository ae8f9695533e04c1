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

# The modules that are tested and linted. Those that users import or install come first and must build for every
# system in SYSTEMS.
PUBLISHED := . valkeygo cmd/redlatch
MODULES := $(PUBLISHED) tests
SYSTEMS := linux darwin windows

# These packages are not tested together with the others. (The tests of bench are quick: they do not measure.)
SLOW := /tests/(interop|scale)(/|$$)

# A continuous build believes no earlier result.
FRESH := $(if $(CI),-count=1)

# $(call go-test,FLAGS) tests every module but its slow packages.
define go-test
@for module in $(MODULES); do \
	echo "test $$module"; \
	(cd $$module && packages=$$(go list ./...) && go test $(1) $(FRESH) $$(grep -vE '$(SLOW)' <<<"$$packages")); \
done
endef

.PHONY: help
help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: servers vet ## Vet and test all but interop, with the race detector, and then hold 100,000 locks. Minutes.
	$(call go-test,-race -timeout 8m)
	@echo "test 100,000 holds, without the race detector"
	@cd tests && go test -timeout 5m $(FRESH) ./scale

.PHONY: short
short: ## Test what needs no server. Seconds.
	$(call go-test,-short -timeout 2m)

.PHONY: vet
vet:
	@for module in $(MODULES); do (cd $$module && go vet ./...); done

.PHONY: interop
interop: servers ## Test against the real Redisson, in Java. Needs a JDK and Maven.
	@tests/interop/build.sh
	@cd tests && go test -race -count=1 -timeout 10m ./interop/...

.PHONY: bench
bench: servers ## Measure, beside plain Redis and other libraries. Options: make bench ARGS='...'.
	@scripts/etcd.sh
	@cd tests && go run ./bench $(ARGS)

.PHONY: lint
lint: format cross .tools/golangci-lint ## Check formatting, vet for every system, and lint.
	@for module in $(MODULES); do \
		echo "lint $$module"; \
		(cd $$module && "$(CURDIR)/.tools/golangci-lint" run ./...); \
	done

.PHONY: cross
cross: ## Build and vet the library and the CLI for Linux, macOS and Windows.
	@for system in $(SYSTEMS); do for module in $(PUBLISHED); do \
		echo "vet $$module for $$system"; \
		(export GOOS=$$system CGO_ENABLED=0 && cd $$module && go build ./... && go vet ./...); \
	done; done

.PHONY: format
format: .tools/gofumpt
	@bad=$$(.tools/gofumpt -l .); \
	if [ -n "$$bad" ]; then printf 'not formatted (make fmt):\n%s\n' "$$bad"; exit 1; fi

.PHONY: fmt
fmt: .tools/gofumpt ## Format all Go files.
	@.tools/gofumpt -w .

.PHONY: servers
servers: ## Put redis-server and valkey-server into .servers/bin, unless they are there.
	@scripts/servers.sh

.PHONY: clean
clean: ## Remove all that make has made, servers and tools included.
	@rm -rf .servers .tools
	@find tests -type d -name target -prune -exec rm -rf {} +

# The tools are built at the versions that tools/go.mod names, and again when it changes.
.tools/golangci-lint .tools/gofumpt: tools/go.mod tools/go.sum
	@echo "build $(@F)"
	@go build -C tools -trimpath -o "$(CURDIR)/$@" "$$(awk '$$1 ~ /\/$(@F)$$/ { print $$1; exit }' tools/go.mod)"
