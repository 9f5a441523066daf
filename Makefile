# Everything a developer or CI runs. `make` alone lists the targets.
#
# The first target that needs it builds .venv and installs the package in editable mode with the versions pinned in
# constraints.txt. A stamp file spares later calls that, until pyproject.toml, constraints.txt or the version change.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules --no-print-directory

VENV := .venv
BENCH := .venv-bench
BIN := $(VENV)/bin
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' src/csdpp/__init__.py)
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
# The first interpreter that runs and is new enough; `make PYTHON=/path/to/python3.13 ...` overrides it.
PYTHON := $(shell for p in python3.11 python3; do if "$$p" -c '$(NEW_ENOUGH)' 2>/dev/null; then echo "$$p"; break; fi; done)
# -qq hides progress and warnings, not errors.
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
# Two workers fit the smallest machine we support; the order of tests must not matter.
WORKERS := 2

# Small eigenproblems are 10 to 100 times slower on two BLAS threads than on one.
test pytest slow: export OPENBLAS_NUM_THREADS := 1
test pytest slow: export OMP_NUM_THREADS := 1
test pytest slow: export MKL_NUM_THREADS := 1

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/.demo-$(VERSION) ## set up .venv and run the demo on the yeast stream
	$(BIN)/csdpp demo

.PHONY: test
test: lint pytest ## set up .venv, then lint, types, rings, tests, doctests, coverage (not the slow tests)

.PHONY: setup
setup: $(VENV)/.test-$(VERSION) ## set up .venv with everything the checks need

.PHONY: lint
lint: setup ## ruff (rules and layout), mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

.PHONY: pytest
pytest: setup ## tests and doctests with coverage, without the lint step
	$(BIN)/pytest -n $(WORKERS) --dist worksteal --cov

.PHONY: slow
slow: setup ## only the tests marked slow (minutes)
	$(BIN)/pytest -m slow -n $(WORKERS) --dist worksteal

.PHONY: format
format: setup ## rewrite the sources in the house layout and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: docs
docs: setup ## write docs/cli.md anew from the parser
	$(BIN)/python -m csdpp.cli._reference docs/cli.md

.PHONY: lock
lock: $(VENV)/pyvenv.cfg ## rewrite constraints.txt with the newest versions that work together
	rm -rf build/lock
	$(BIN)/python -m venv build/lock
	build/lock/bin/python -m pip --disable-pip-version-check -qq install '.[dev]'
	{ echo '# The versions that `make demo`, `make test` and CI install. Rewritten by `make lock`.'; \
	  build/lock/bin/python -m pip freeze --exclude csdpp; } > build/constraints.txt
	mv build/constraints.txt constraints.txt
	rm -rf build/lock

.PHONY: bench-env
bench-env: $(BENCH)/.done ## set up .venv-bench with the peers that the benchmarks compare with

.PHONY: bench
bench: setup $(BENCH)/.done ## all benchmarks with peers, half an hour; CSDPP_DATA=FOLDER for the real sets
	$(BIN)/csdpp bench --output build/bench $(if $(CSDPP_DATA),--data $(CSDPP_DATA)) --peers $(BENCH)/bin/python
	cp build/bench/bench.json build/bench/*.png benchmarks/results/
	$(BIN)/python benchmarks/growth.py --record
	$(BIN)/python benchmarks/targets.py --record --peers $(BENCH)/bin/python
	$(BIN)/python benchmarks/page.py --record

.PHONY: clean
clean: ## remove .venv, caches and build output
	rm -rf $(VENV) $(BENCH) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "csdpp needs Python 3.11 or newer and found none; install it, or name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo "csdpp needs Python 3.11 or newer; $(PYTHON) is not: name another with make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The build backend goes in first and from the pins, so that the build needs no environment of its own.
$(VENV)/.%-$(VERSION): $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt hatchling
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[$*]'
	@touch $@

# One by one: a peer that does not install is left out here, and reported as missing by the benchmark.
$(BENCH)/.done: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(BENCH)
	sed '/^#/d' $< | while read -r peer; do \
	  $(BENCH)/bin/python -m pip --disable-pip-version-check -qq install "$$peer" || echo "$$peer does not install"; done
	@touch $@
