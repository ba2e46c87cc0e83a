# Everything a fresh clone needs is done here: Python >= 3.10, make and a package index are enough.
#
#   make demo      install, then convert a trained network into four number formats
#   make test      install with the development tools, then lint, types and tests
#   make bench     install, then measure this machine
#   make docs      install what the documentation needs, then build it into build/docs and check its links
#   make exhaustive   every float32 pattern beside the specification (hours; MINUTES=10 for a slice): docs/proof.md
#   make fuzz      a million damaged inputs (COUNT=, MINUTES=, SEED=); failing ones go to build/fuzz: docs/robustness.md
#   make clean     remove build output and caches;  make distclean: also the environment
#
# PYTHON=python3.12 chooses the interpreter of a new environment, WORKERS=8 the number of test processes,
# TORCH=torch==2.13.0 installs PyTorch for the tests that use it (without it they skip).
# Paths are relative throughout, so that a clone's own path may contain spaces.

PYTHON ?= python3
WORKERS ?= 2
TORCH ?=
MINUTES ?=
THREADS ?= 1
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --quiet --disable-pip-version-check

.PHONY: help demo test bench exhaustive fuzz coverage mutation docs linkcheck newcomer clean distclean

help:
	@sed -n '3,9s/^# *//p' Makefile

demo: $(VENV)/installed
	@$(PY) examples/digits/demo.py

test: $(VENV)/dev $(if $(TORCH),$(VENV)/torch)
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(PY) -m pytest -n $(WORKERS)

bench: $(VENV)/installed
	@$(VENV)/bin/bittrue bench

# What has a result of this code is not run again; an interrupted run goes on.
exhaustive: $(VENV)/dev
	@PYTHONPATH=tests $(PY) -m exhaustive --threads $(THREADS) $(if $(MINUTES),--minutes $(MINUTES))

fuzz: $(VENV)/dev
	@PYTHONPATH=tests $(PY) -m robustness.fuzz --workers $(WORKERS) $(if $(COUNT),--count $(COUNT)) \
	  $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

# The share of lines and branches that the tests run, and mutants of the specification that they let live. Hours.
coverage: $(VENV)/proof
	@$(PY) -m coverage erase
	@$(PY) -m coverage run -m pytest -n $(WORKERS)
	@$(PY) -m coverage combine -q
	@$(PY) -m coverage html -q -d build/coverage
	@$(PY) -m coverage report

mutation: $(VENV)/proof
	@$(PY) -m mutmut run --max-children $(WORKERS)
	@$(PY) -m mutmut results

docs: $(VENV)/docs
	@$(PY) -m sphinx -q -n -W --keep-going docs build/docs
	@$(PY) docs/_ext/links.py build/docs
	@echo "build/docs/index.html"

# Links to other hosts. Sphinx takes a host that cannot be reached for a broken link; the second line tells them apart.
linkcheck: $(VENV)/docs
	@$(PY) -m sphinx -Q -b linkcheck docs build/linkcheck || true
	@$(PY) docs/_ext/links.py --outside build/linkcheck/output.json

# The commands of docs/start.md in a fresh environment, with the output that the page prints.
newcomer:
	@$(PYTHON) .ci/newcomer

# The stamps make a repeated call quick; a changed pyproject.toml installs again.
$(VENV)/created:
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
	  v >= (3, 10) or sys.exit("bittrue needs Python 3.10 or newer; %s is %d.%d. Try: make PYTHON=python3.12" \
	  % (sys.executable, *v[:2]))'
	@echo "Setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/installed: pyproject.toml $(VENV)/created
	@echo "Installing bittrue ..."
	@$(PIP) install --editable .
	@touch $@

# pip >= 25.1 reads the dependency group of pyproject.toml.
$(VENV)/dev: pyproject.toml $(VENV)/installed
	@echo "Installing the development tools ..."
	@$(PIP) install --group dev
	@touch $@

$(VENV)/torch: $(VENV)/dev
	@echo "Installing $(TORCH) ..."
	@$(PIP) install '$(TORCH)'
	@touch $@

$(VENV)/docs: pyproject.toml $(VENV)/installed
	@echo "Installing what the documentation needs ..."
	@$(PIP) install --group docs
	@touch $@

$(VENV)/proof: $(VENV)/dev
	@echo "Installing the tools for coverage and mutation ..."
	@$(PIP) install --group proof
	@touch $@

clean:
	rm -rf docs/formats docs/project docs/reference
	rm -rf build dist mutants .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
