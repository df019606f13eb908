# make demo | test | lint | bench | fuzz | clean. Everything lives in .venv; nothing needs root.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: help demo test lint bench fuzz clean venv

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Numerics on one thread: two pytest workers otherwise fight for the same cores.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
# XLA's own pool: small programs on several threads take up to three times the CPU time.
export NPROC ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pyright finds Node.js in the wheel of the dev extra, and does not ask for its newest version.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

# At most two workers; PYTEST_ARGS adds options, TESTS narrows the choice.
WORKERS := $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); [ "$$n" -gt 2 ] && echo 2 || echo "$$n")
PYTEST_ARGS ?=
TESTS ?= tests

help:
	@echo "make demo    fit a cube to real tosses and write runs/demo/report.html"
	echo "make test    run the tests"
	echo "make lint    ruff, pyright, import layers"
	echo "make bench   run the benchmarks that need no data beside the package"
	echo "make fuzz    read damaged recordings for FUZZ_SECONDS (600)"
	echo "make clean   remove build products, caches and .venv"

# Install again only if the declared dependencies or the pinned versions changed.
venv: $(STAMP)
$(STAMP): pyproject.toml constraints.txt
	@find_python() {
	  for name in python3.11 python3.12 python3.13 python3 python; do
	    if command -v "$$name" >/dev/null 2>&1 \
	      && "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
	      echo "$$name"; return 0
	    fi
	  done
	  return 1
	}
	if [ ! -x $(BIN)/python ] || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then
	  if ! python=$$(find_python); then
	    echo "No Python >= 3.11 found. Debian/Ubuntu: apt-get install python3 python3-venv;" >&2
	    echo "elsewhere: https://www.python.org/downloads/ or pyenv install 3.11." >&2
	    exit 1
	  fi
	  if ! "$$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
	    echo "$$python has no venv module. Debian/Ubuntu: apt-get install python3-venv." >&2
	    exit 1
	  fi
	  "$$python" -m venv --clear $(VENV)
	fi
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]' </dev/null
	touch $@

demo: venv
	$(BIN)/sameworld demo

# Rendering tests run with the first backend that really draws a picture here.
test: venv
	@if [ -z "$${MUJOCO_GL:-}" ]; then
	  for backend in egl osmesa; do
	    if MUJOCO_GL=$$backend $(BIN)/python -m sameworld.cli.gl_probe >/dev/null 2>&1; then
	      export MUJOCO_GL=$$backend; break
	    fi
	  done
	fi
	echo "MUJOCO_GL=$${MUJOCO_GL:-none: rendering tests are skipped}"
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS) $(TESTS) </dev/null

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright </dev/null
	$(BIN)/lint-imports --no-cache

bench: venv
	@mkdir -p out
	for file in benchmarks/*.py; do
	  name=$$(basename "$$file" .py)
	  if [ "$$name" = __init__ ] || ! grep -q '__main__' "$$file"; then continue; fi
	  echo "== $$name"
	  $(BIN)/python -m "benchmarks.$$name" --out "out/$$name.json" $(BENCH_ARGS)
	done

# FUZZ_SEED repeats a run; a case that breaks a reader is kept in out/fuzz.
fuzz: venv
	@$(BIN)/python tests/fuzz/run_fuzz.py $${FUZZ_SECONDS:-600} $${FUZZ_SEED:-} </dev/null

clean:
	rm -rf $(VENV) build dist out .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
