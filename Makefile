# Two commands do everything on a fresh machine: `make quickstart` and `make test`.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUN := LITELLM_LOCAL_MODEL_COST_MAP=True $(BIN)

.DEFAULT_GOAL := help
.PHONY: help install quickstart test check format lint types imports test-slow clean

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints-agl03.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints-agl03.txt -e '.[quickstart,dev]'
	@touch $(READY)

install: $(READY) ## Create .venv and install everything that the commands below need

quickstart: $(READY) ## Train an unmodified agent on this machine and open its report
	$(RUN)/milegpo quickstart

test: $(READY) ## Run the tests
	$(RUN)/python -m pytest -m "not slow" -n 2 --dist loadgroup

check: format-check lint types imports ## What CI checks besides the tests

all: check test ## Everything that CI runs

format: $(READY) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .

format-check: $(READY)
	$(BIN)/ruff format --check .

lint: $(READY) ## Lint with ruff
	$(BIN)/ruff check .

types: $(READY) ## Type-check with mypy, strict
	$(BIN)/mypy

imports: $(READY) ## Check that data flows one way through the rooms
	$(BIN)/lint-imports

test-slow: $(READY) ## Run the minutes-long tests
	$(RUN)/python -m pytest -m slow

clean: ## Remove the venv and everything that was built
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
