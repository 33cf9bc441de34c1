# Every target can be run in a fresh clone: scripts/setup installs what is missing, or says what to
# install.
#
# Cargo always builds the whole workspace. With -p it would choose other features for shared
# dependencies, and build them again each time the selection changes.

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
DENY := .tools/bin/cargo-deny

# make demo ZOOKEEPER=1 registers in a real ZooKeeper instead of a folder of files.
ZOOKEEPER ?=
WITH_ZOOKEEPER := $(filter-out 0 no,$(ZOOKEEPER))

.DEFAULT_GOAL := help
.PHONY: help demo test check-long bench build fmt

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 \2/p' $(MAKEFILE_LIST) \
		| awk '{ printf "  make %-12s", $$2; $$1 = $$2 = ""; sub(/^ +/, ""); print }'

demo: ## Tower, a Beacon, Envoy and two upstreams on this machine (ZOOKEEPER=1: with ZooKeeper)
	scripts/setup cc rust envoy node $(if $(WITH_ZOOKEEPER),zookeeper)
	scripts/build-ui
	cargo build --workspace
	$(TARGET_DIR)/debug/demo $(if $(WITH_ZOOKEEPER),--zookeeper)

test: ## All that CI checks: format, lints, licences, and every test
	scripts/setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(DENY) check licenses bans sources
	@$(DENY) check advisories || echo 'advisories: not clean, or the database is out of reach (not fatal)' >&2
	scripts/check-deploy
	scripts/build-ui
	cargo build --workspace
	cargo test --workspace
	scripts/test-ui

check-long: ## The same tests with many more rounds: soaks, fuzzing and long randomised runs
	scripts/setup
	cargo build --workspace
	TOWER_LONG=1 cargo test --workspace

bench: ## A short form of all benchmarks, with optimised binaries: writes docs/BENCHMARKS.md
	scripts/setup cc rust zookeeper envoy
	cargo build --release --workspace
	$(TARGET_DIR)/release/tower-bench all --document docs/BENCHMARKS.md

build: ## Build everything
	scripts/setup cc rust node
	scripts/build-ui
	cargo build --workspace

fmt: ## Format the code
	cargo fmt --all
