# make install | demo | toy | test | lint | docs | dist | bench | bench-gpu: each sets up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install demo toy test lint docs dist bench bench-gpu clean

install: $(VENV)/.installed-dev

# One stamp per set of extras: installs again only if pyproject.toml or constraints.txt has changed.
$(VENV)/.installed-%: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$*]"
	touch $@

demo: install
	$(BIN)/sohot demo --out demo

toy: install
	$(BIN)/python examples/toy.py --out demo

# Tests start many processes, which keep the bytecode of this package for one another, also where that is turned off.
test: install
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, into build/docs: runs every example and notebook, needs no connection, and takes a warning for an error.
docs: $(VENV)/.installed-docs
	rm -rf build/docs build/doctrees docs/gallery
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --builder html --conf-dir docs --doctree-dir build/doctrees \
		--fail-on-warning --keep-going --quiet . build/docs
	$(BIN)/python docs/_site/links.py build/docs

# The wheel is built from the source archive, so trying it in an environment of its own tries both.
dist: install
	rm -rf dist build/fresh
	$(BIN)/python -m build --no-isolation
	$(PYTHON) -m venv build/fresh
	build/fresh/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	build/fresh/bin/sohot --version
	rm -rf build/fresh

bench: install $(VENV)/.installed-bench
	$(BIN)/python benchmarks/alignment_cpu.py

# GPU_PYTHON: a Python whose torch knows your GPU, if that of .venv does not.
GPU_PYTHON ?= $(BIN)/python
bench-gpu: install
	PYTHONPATH=src $(GPU_PYTHON) benchmarks/gpu.py

clean:
	rm -rf $(VENV) demo build dist docs/gallery .mypy_cache .pytest_cache .ruff_cache .hypothesis
