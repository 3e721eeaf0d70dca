# What there is to run: `make` or `make help` lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
# An installation has its modules compiled: without them here, each start of `platform` compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
UV_VERSION := 0.13.8
BIN := .venv/bin
STAMP := .venv/.stamp
SITE ?= build/site
SITE_BIN := .venv-site/bin
SITE_STAMP := .venv-site/.stamp
COMPILE := .venv-lock/bin/uv pip compile --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet

.PHONY: help env setup extras check test sdk real vm endurance mutants bench demo docs site lock pins clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

env: $(STAMP) ## make .venv with the locked tools and the project in it

# The stamp goes first and comes back last. Without one, .venv is new or was left half made:
# it is then made anew. With one, only what changed is installed.
$(STAMP): requirements/dev.txt pyproject.toml
	@if [ -e $@ ]; then echo "env: updating .venv"; else \
		echo "env: making .venv"; $(PYTHON) -m venv --clear .venv; fi
	@rm -f $@
	@echo "env: installing requirements/dev.txt"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@echo "env: installing the project"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

check: env ## check the format, the rules, the types and the layers, of the Go modules too
	@echo "check: ruff format"
	@$(BIN)/ruff format --check .
	@echo "check: ruff"
	@$(BIN)/ruff check .
	@echo "check: mypy"
	@$(BIN)/mypy
	@echo "check: lint-imports"
	@$(BIN)/lint-imports --no-logo
	@echo "check: gofmt, go vet, staticcheck"
	@$(BIN)/python -m tests.golang.lint

test: check setup extras $(SITE_STAMP) ## check, then run every test, the local cluster's too
	@echo "test: servers that keep the state in tests"
	@$(BIN)/python -m tests.state_servers
	@echo "test: pytest"
	@$(BIN)/python -m tests.run pure
	@echo "test: pytest, on the local cluster"
	@$(BIN)/python -m tests.run cluster

real: setup extras ## deploy projects with real programs, from the first deploy to their data after a destroy
	@echo "real: pytest"
	@$(BIN)/pytest -m real --timeout 0

vm: EMULATOR := 1
vm: setup extras ## run the local cluster on bare emulated machines, about an hour (K=systemd, K=sysvinit: on one)
	@echo "vm: pytest"
	@$(BIN)/pytest -m vm $(if $(K),-k $(K)) -v --timeout 0 --durations 0

endurance: env ## run the long tests
	@echo "endurance: pytest"
	@ENDURANCE=1 $(BIN)/pytest -m endurance --timeout 0

mutants: env ## change the code one token at a time, and see which changes no test notices (COUNT=200 SEED=1)
	@$(BIN)/python -m tests.mutants --count $(or $(COUNT),200) --seed $(or $(SEED),1)

bench: setup ## measure rendering, starts, idle commands, deploys, many services, failures, builds and syncing, and draw the figures
	@mkdir -p benchmarks/figures; missed=; \
	for one in render startup page idle deploy scale failures builds sync; do \
	  echo "bench: benchmarks/$$one.py"; \
	  $(BIN)/python benchmarks/$$one.py --json benchmarks/figures/$$one.json || missed+=" $$one"; \
	done; \
	echo "bench: benchmarks/plots.py"; $(BIN)/python benchmarks/plots.py benchmarks/figures; \
	if [ -n "$$missed" ]; then echo "bench: a limit was missed:$$missed"; exit 1; fi

setup: env ## find or build the tools, and install the packages the local cluster needs
	@$(BIN)/platform setup --cluster --install

# Only tests look at pages, and press Tab in zsh and fish; those that lack it are skipped, and say so.
# In runlevel 1, Debian starts no server that it installs.
extras: ## install what only tests use, where Debian's packages can be: a browser, zsh and fish, Graphviz, a compiler, an emulator, PostgreSQL
	@missing=; \
	{ command -v chromium-headless-shell || command -v chromium; } >/dev/null || missing=chromium-headless-shell; \
	command -v certutil >/dev/null || missing+=" libnss3-tools"; \
	command -v mmdebstrap >/dev/null || missing+=" mmdebstrap"; \
	command -v musl-gcc >/dev/null || missing+=" musl-tools"; \
	command -v npm >/dev/null || missing+=" npm"; \
	command -v qemu-system-x86_64 >/dev/null || missing+=" qemu-system-x86"; \
	command -v dot >/dev/null || missing+=" graphviz"; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing+=" postgresql"; \
	for one in zsh fish; do command -v $$one >/dev/null || missing+=" $$one"; done; \
	$(if $(EMULATOR),command -v qemu-system-x86_64 >/dev/null || missing+=" qemu-system-x86"; )\
	if [ -z "$$missing" ]; then exit; fi; \
	if ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ]; then \
	  echo "extras: not installed, as that needs apt-get and root:" $$missing; exit; fi; \
	echo "extras: installing" $$missing; \
	export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1; \
	apt-get update -qq </dev/null >/dev/null 2>&1 || true; \
	for one in $$missing; do \
	  apt-get install -y -qq --no-install-recommends $$one </dev/null >/dev/null 2>&1 || \
	    echo "extras: apt-get failed, so this is not there: $$one"; \
	done

demo: setup ## run examples/shop on the local cluster and print its addresses
	@$(BIN)/python -m examples.shop.demo

docs: env ## write the generated parts of docs/ anew
	@echo "docs: docs/generate.py"
	@$(BIN)/python docs/generate.py

sdk: env ## write the SDKs of the provider for TypeScript and Go, in build/sdk
	@$(BIN)/python -m tests.languages.sdk build/sdk

site: $(SITE_STAMP) ## build the documentation as a site, in build/site (SITE=FOLDER)
	@echo "site: sphinx-build"
	@$(if $(filter build/site,$(SITE)),rm -rf build/site build/site.doctrees)
	@$(SITE_BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky --fresh-env \
	  --conf-dir docs/site --doctree-dir $(SITE).doctrees . $(SITE)

# Sphinx has an environment of its own: nothing else needs it.
$(SITE_STAMP): requirements/site.txt
	@echo "site: making .venv-site"
	@$(PYTHON) -m venv --clear .venv-site
	@$(SITE_BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/site.txt
	@touch $@

lock: ## write requirements/ anew from pyproject.toml (UPGRADE=1: take newer versions)
	@echo "lock: making .venv-lock"
	@$(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@echo "lock: requirements/dev.txt"
	@$(COMPILE) pyproject.toml --extra dev $(if $(UPGRADE),--upgrade) -o requirements/dev.txt
	@echo "lock: requirements/runtime.txt"
	@$(COMPILE) pyproject.toml -c requirements/dev.txt $(if $(UPGRADE),--upgrade) -o requirements/runtime.txt
	@echo "lock: requirements/site.txt"
	@$(COMPILE) --group site $(if $(UPGRADE),--upgrade) -o requirements/site.txt

pins: env ## download each release, compare its checksum with the pinned one, and pin what is new
	@$(BIN)/python -m composeplat.toolchain.pin

clean: ## remove everything that make made
	@echo "clean: removing environments, caches and builds"
	@rm -rf .venv .venv-lock .venv-site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .mutants build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
