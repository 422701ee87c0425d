# Every target makes what it needs in .venv, from nothing but Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test test-all lint bench docs clean

demo: $(VENV)/.base
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

test: $(VENV)/.test
	$(BIN)/pytest -q -n $(WORKERS) -m "not slow"

test-all: $(VENV)/.test
	$(BIN)/pytest -q -n $(WORKERS)

lint: $(VENV)/.lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

docs: $(VENV)/.base
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip
	$(BIN)/pip install -q -e .
	touch $@

$(VENV)/.test: $(VENV)/.base tests/system-packages.sh
	sh tests/system-packages.sh
	$(BIN)/pip install -q --group test
	touch $@

$(VENV)/.lint: $(VENV)/.base
	$(BIN)/pip install -q --group lint
	touch $@

$(VENV)/.bench: $(VENV)/.base
	$(BIN)/pip install -q --group bench
	touch $@
