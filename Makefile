# One line per command for people; `make` alone lists them.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.synced

# Bytecode is kept: without, every process of the tests compiles all of them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup check lint types public-types test test-again test-scheduler collected demo bench bench-vs bench-upkeep lock clean oracle parity-fuzz control-plane chaos mutants

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 17

setup: $(STAMP) ## create .venv with the locked dependencies and mooring itself
	@$(BIN)/python -m compileall -q src bench

$(STAMP): pyproject.toml requirements/dev.lock
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(v < (3, 11) and "mooring needs Python 3.11 or newer, $(PYTHON) is %d.%d; try: make PYTHON=python3.12" % v)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --requirement requirements/dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@# Where no bytecode is written, each start of `mooring run` would compile its dependencies.
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -c 'import mooring.cli.run.process, mooring.cli.run.endpoints, pytest, hypothesis'
	@touch $@

check: lint types public-types ## format, lint, types, layers

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo

# Outside of the tree and one for all clones: it holds relative paths and knows files by their hashes.
MYPY_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mooring/mypy

types: setup
	$(BIN)/mypy --cache-dir "$(MYPY_CACHE)"

public-types: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV="$(CURDIR)/$(VENV)" \
	  basedpyright --verifytypes mooring --ignoreexternal --outputjson | $(BIN)/python tools/public_types.py

# Of the real API servers' CPU, a tenth is garbage collection at Go's default of 100.
test: export GOGC ?= 400
# A test runs mypy on code that uses all of src, which `make check` has read already.
test: export MYPY_CACHE_DIR ?= $(MYPY_CACHE)
test: setup ## all tests, JOBS=4 at a time: many wait for servers
	$(BIN)/python -m pytest --numprocesses $(or $(JOBS),4) --dist worksteal

# Up to three tests that fail while the machine does many things at once get a second try, alone; they are named.
test-again: setup ## the tests that failed in the last run, one after the other
	@$(BIN)/python tools/failed_tests.py --at-most 3
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none

# The rooms of the scheduler; no real control plane, no laptop cluster but where a test serves it.
SCHEDULER := api cache config decision framework observe parity plugins preemption queue runtime scheduler simulator

test-scheduler: setup ## the tests of the scheduler alone, without the laptop cluster: some minutes
	$(BIN)/python -m pytest --numprocesses $(or $(JOBS),3) --dist worksteal $(addprefix tests/,$(SCHEDULER))

collected: setup # compiles the tests once, before several processes would; what is wrong says `make test`
	@$(BIN)/python -m pytest --collect-only >/dev/null || true

oracle: setup ## build the program that answers with kube-scheduler's own code (needs Go)
	$(BIN)/python -m tests.oracle.oracle

control-plane: setup ## build etcd, kube-apiserver, kube-scheduler and kubectl for tests (needs Go); prints their folder
	@$(BIN)/python -m tests.controlplane.build

chaos: setup ## schedule 3,000 pods on 1,000 nodes while everything around breaks, ~15 minutes (needs Go)
	MOORING_CHAOS=full MOORING_REQUIRE_REAL=1 $(BIN)/python -m pytest -s tests/integration/chaos tests/integration/test_controller.py

parity-fuzz: setup ## compare N random decisions with kube-scheduler's: N=2000 SEED=7 [FAMILY=spread]
	$(BIN)/python -m tests.oracle.fuzz --n $(or $(N),2000) --seed $(or $(SEED),7) $(if $(FAMILY),--family $(FAMILY))

# Tests of the engine, those that find most mutants in little time first.
ENGINE := same_calls results what_if explaining faults filtering refusals normalize \
  against_the_plain_walk feasible scores_by_label domains memory random_sequences

mutants: setup ## break the decision engine in 300 places; the tests must notice: [COUNT=300 SEED=1 JOBS=2]
	$(BIN)/python tools/mutants.py src/mooring/decision \
	  --tests $(addprefix tests/decision/test_,$(ENGINE:=.py)) tests/parity/test_recorded.py tests/parity \
	  --count $(or $(COUNT),300) --seed $(or $(SEED),1) --jobs $(or $(JOBS),2) \
	  --known tools/equal_mutants.txt --trust-known

demo: setup ## a cluster in one process, a scheduler with a plugin, and a short story
	$(BIN)/mooring demo

bench: setup ## microseconds per pod (INSTRUCTIONS=1: instructions, needs valgrind) at 500, 5,000 and 15,000 nodes, in process: [AGAINST=HEAD~1]
	$(BIN)/python -m bench.inprocess $(if $(INSTRUCTIONS),--instructions) $(if $(AGAINST),--against $(AGAINST)) $(ARGS)

bench-vs: setup ## beside the real kube-scheduler, ~1 hour (needs Go): [ARGS="--nodes 500 --pods 300 --rounds 1"]
	$(BIN)/python -m bench.versus $(ARGS)

bench-upkeep: setup ## start-up and quiet hours beside the real kube-scheduler, ~20 minutes (needs Go): [ARGS="--nodes 500 --existing 5000 --rounds 1"]
	$(BIN)/python -m bench.versus.upkeep $(ARGS)

lock: setup ## resolve the dependencies again into requirements/dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-annotate --group dev pyproject.toml --output-file requirements/dev.lock

clean: ## remove .venv and the caches of the tools
	rm -rf $(VENV) "$(MYPY_CACHE)" .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
