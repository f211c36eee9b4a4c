# Two commands do all set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadgroup

# One BLAS thread: the tests are many small problems, and threads would only wait for each other.
export OPENBLAS_NUM_THREADS = 1
export OMP_NUM_THREADS = 1

.PHONY: demo test test-all hostile lint docs format clean

demo: $(VENV)/.demo
	$(BIN)/skdare demo

# All but what is marked slow, which `make test-all` runs too, and hostile; some of it: TESTS=tests/cli.
test: $(VENV)/.test
	$(PYTEST) -m "not slow and not hostile" $(TESTS)

test-all: $(VENV)/.test
	$(PYTEST) -m "not hostile"

# Damaged files, kills and odd data, from a fixed seed; for hours: HOSTILE="--seed 12 --minutes 120".
hostile: $(VENV)/.test
	$(PYTEST) tests/hostile -m hostile $(HOSTILE)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Offline, and a warning is an error; pages are in build/docs.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html -d build/doctrees docs build/docs

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf docs/auto_examples docs/reference/generated docs/reference/backreferences docs/reference/commands
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "skdare needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.core: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.demo: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[report]'
	touch $@

$(VENV)/.test: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(VENV)/.lint: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[lint]'
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@
