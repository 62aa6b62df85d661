# `make help` lists the targets; each does all of its own set-up.

GOLANGCI_VERSION := v2.15.0
FUZZTIME ?= 30s
COUNT ?= 20
SEEDS ?= 100000
FROM ?= 1
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help build test lint bench fuzz soak simulate mutants web web-check requirements

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build ./hubmesh, one static binary
	CGO_ENABLED=0 go build -trimpath -o hubmesh ./cmd/hubmesh

test: ## run everything that CI runs; installs what is missing where apt is there
	@go run ./scripts/verify $(ARGS)

lint: ## run golangci-lint (its first build takes minutes; kept in .cache)
	@test -x .cache/bin/golangci-lint-$(GOLANGCI_VERSION) || { \
	  GOBIN=$(CURDIR)/.cache/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION) && \
	  mv .cache/bin/golangci-lint .cache/bin/golangci-lint-$(GOLANGCI_VERSION); }
	.cache/bin/golangci-lint-$(GOLANGCI_VERSION) run ./...

bench: ## measure, with limits and peers beside us; writes bench/results
	go -C bench run . $(ARGS)

fuzz: ## run each fuzz target for FUZZTIME (default 30s)
	@go run ./scripts/fuzz -time $(FUZZTIME) $(ARGS)

soak: ## SECONDS of faults on three silos under load, by SEED; without SECONDS: the tests COUNT times in random order, with -race
ifdef SECONDS
	HUBMESH_SOAK=1 go test ./internal/e2e -count=1 -timeout 24h -v -run '^TestAfterAnyFaultsUnderLoadEverythingIsEqual$$' -seconds $(SECONDS) $(if $(SEED),-seed $(SEED)) $(ARGS)
else
	HUBMESH_SOAK=1 go test -race -shuffle=on -count=$(COUNT) -timeout 4h $(or $(ARGS),./...)
endif

simulate: ## run SEEDS seeds of the cluster protocol's simulation, from FROM on
	go test ./meshtest/sim -count=1 -timeout 24h -run '^TestTheProtocolHolds$$' -v -seeds $(SEEDS) -from $(FROM) $(ARGS)

mutants: ## take each rule of the cluster protocol out and show that the simulation or a test notices
	@go run ./scripts/mutants $(ARGS)

web: ## build the page into web/dist
	@go run ./scripts/verify -only web-build

web-check: ## test the page and its client, and compare web/dist with a fresh build
	@go run ./scripts/verify -only web

requirements: ## write docs/requirements.md from the rules cited by tests
	@go run ./scripts/requirements
