# Every target makes what it needs in .venv, from nothing but Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist loadgroup

.PHONY: demo example test test-core test-all lint bench docs clean

demo: $(VENV)/.base
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

# Networks that reach 97 % on the MNIST test set, in PyTorch, scikit-learn and JAX.
example: $(VENV)/.frameworks
	$(BIN)/python examples/train_torch.py
	$(BIN)/python examples/train_sklearn.py
	$(BIN)/python examples/train_jax.py

# The core and the formats, in a few minutes. Ray, whose tests are all long ones, is not here yet.
test: $(VENV)/.formats
	$(PYTEST) -m "not slow" --ignore=tests/engines/test_ray.py

# The core alone, for other Pythons.
test-core: $(VENV)/.formats
	$(PYTEST) -m "not slow" --ignore=tests/formats --ignore=tests/adapters \
		--ignore=tests/remote --ignore=tests/web --ignore=tests/engines --ignore=tests/viewer

# The long tests, and the frameworks.
test-all: $(VENV)/.frameworks
	$(PYTEST) -m slow

lint: $(VENV)/.lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

docs: $(VENV)/.base
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv* demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip
	$(BIN)/pip install -q -e .
	touch $@

$(VENV)/.test: $(VENV)/.base tests/system-packages.sh
	sh tests/system-packages.sh strace gcc make node:nodejs iverilog tmux zsh fish
	$(BIN)/pip install -q --group test
	touch $@

$(VENV)/.formats: $(VENV)/.test
	$(BIN)/pip install -q --group formats --group services
	touch $@

# PyTorch by itself and first: this release is the small one, for processors.
$(VENV)/.frameworks: $(VENV)/.formats
	$(BIN)/pip install -q 'torch==2.13.0'
	$(BIN)/pip install -q --group frameworks --group engines --group browser --group clouds
	sh tests/system-packages.sh chromium npm
	npm install --silent --no-audit --no-fund --prefix $(VENV)/node azurite@3.35.0
	touch $@

$(VENV)/.lint: $(VENV)/.base
	$(BIN)/pip install -q --group lint
	touch $@

$(VENV)/.bench: $(VENV)/.formats
	$(BIN)/pip install -q --group bench
	touch $@
