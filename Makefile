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

# Everything except slow and hostile tests; a part of it: make test TESTS=tests/cli.
test: $(VENV)/.test
	$(PYTEST) -m "not slow and not hostile" $(TESTS)

test-all: $(VENV)/.test
	$(PYTEST) -m "not hostile" $(TESTS)

# Damaged files, kills and odd data, from a fixed seed.
hostile: $(VENV)/.test
	$(PYTEST) -m hostile $(TESTS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Offline, and a warning is an error; pages are in build/docs.
docs: $(VENV)/.docs
	rm -rf docs/reference/generated build/doctrees
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html -d build/doctrees docs build/docs

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "skdare needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --group test
	touch $@

$(VENV)/.lint: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --group lint
	touch $@

$(VENV)/.docs: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --group docs
	touch $@
