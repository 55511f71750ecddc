# The project's commands. Everything they need goes into .venv (benchmarks: .venv-bench).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS := speech,report,tune,onnx,serve,dask,docs,test
comma := ,
# versions and hashes as in requirements.lock, for the Pythons it is tested with; for others as pyproject.toml allows
LOCKED = $(shell $(PYTHON) -c 'import sys; print("yes" * ((3, 11) <= sys.version_info < (3, 14)))')
# sktime.py and aeon.py import what only .venv-interop has
DOCTESTS := --doctest-modules src/echolearn $(addprefix --ignore=src/echolearn/interop/,sktime.py aeon.py)
DATA ?= ../shared/data/an4_states.npz
BASE ?= HEAD~1

.PHONY: demo test test-half test-rest test-oldest test-newest test-pythons interop lint same-bits bench tables series forecasts defaults examples notebooks reliability mutants docs docs-look dist lock clean

demo: $(VENV)/ready  ## the main job
	$(BIN)/echolearn table1

# the folders of about one half of the tests, by time; the other half is everything else
HALF := $(addprefix tests/,benchmarks campaigns cli cluster paper export)

test: $(VENV)/ready lint  ## all the tests in two halves side by side, with coverage, and the examples in docstrings
	rm -f .coverage .coverage.*
	$(MAKE) --no-print-directory -j 2 test-half test-rest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/python -m pytest $(DOCTESTS)

test-half: $(VENV)/ready
	COVERAGE_FILE=.coverage.half $(BIN)/python -m pytest --cov --cov-report= $(HALF)

test-rest: $(VENV)/ready
	COVERAGE_FILE=.coverage.rest $(BIN)/python -m pytest --cov --cov-report= $(addprefix --ignore=,$(HALF))

test-oldest: .venv-oldest/ready  ## with the oldest versions that pyproject.toml allows
	.venv-oldest/bin/python -m pytest -W ignore::DeprecationWarning  # old packages warn of each other

test-newest: .venv-newest/ready  ## with the newest versions there are, whatever the lock file says
	.venv-newest/bin/python -m pytest

test-pythons:  ## with each Python that is here, as `make test` does without lint
	for version in 3.11 3.12 3.13; do \
	  if python$$version -c '' 2>/dev/null; then \
	    $(MAKE) .venv-$$version/ready VENV=.venv-$$version PYTHON=python$$version && \
	    .venv-$$version/bin/python -m pytest && \
	    .venv-$$version/bin/python -m pytest $(DOCTESTS) || exit 1; \
	  else echo "python$$version: not here, left out"; fi; done

interop: .venv-interop/ready  ## the checks of sktime and aeon, the exchange with reservoirpy, and their examples in docstrings
	.venv-interop/bin/python -m pytest tests/interop
	.venv-interop/bin/python -m pytest -W ignore --doctest-modules src/echolearn/interop

# UPGRADE= keeps the versions that requirements.lock has and adds only what is missing
UPGRADE ?= --upgrade
lock: .venv-uv/ready  ## a new requirements.lock: the newest versions that pyproject.toml allows, with their hashes
	printf 'hatchling\neditables\n' | .venv-uv/bin/uv pip compile pyproject.toml - $(foreach e,$(subst $(comma), ,$(EXTRAS)),--extra $(e)) \
	  $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --quiet --output-file requirements.lock

docs: $(VENV)/ready  ## the documentation site, in docs/_build/html; pages and examples run once per version of them and of src/
	MPLBACKEND=agg OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -j auto -W --keep-going docs docs/_build/html
	@echo "open docs/_build/html/index.html"

docs-look: $(VENV)/ready  ## every page of the built site in Chromium, two widths, light and dark; pictures in runs/site
	$(BIN)/python -m reliability.site_pages --pictures runs/site

dist: $(VENV)/ready  ## sdist and wheel in dist/, checked, installed in an empty environment and tried there
	rm -rf dist .venv-dist
	$(BIN)/python -m build --quiet --no-isolation --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv .venv-dist
	$(BIN)/python -m build --quiet --no-isolation --outdir .venv-dist/again .
	diff --recursive dist .venv-dist/again  # a second build has the same bytes
	.venv-dist/bin/python -m pip install --quiet dist/*.whl
	.venv-dist/bin/python -m pip check
	cd dist && ../.venv-dist/bin/python ../tools/try_wheel.py

lint: $(VENV)/ready  ## style, types, which package imports which, and the rules of the tree
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/words.py
	$(BIN)/python -m pytest tests/test_structure.py

same-bits: $(VENV)/ready  ## the results of the commit BASE and of the working tree, compared bit for bit; ONLY=part of a case's name
	$(BIN)/python -m reliability.same_bits.compare --base $(BASE) --only '$(ONLY)'

bench: .venv-bench/ready  ## side by side with other libraries; DATA=path/to/an4_states.npz
	.venv-bench/bin/python benchmarks/peers.py --data $(DATA)
	.venv-bench/bin/python benchmarks/ratios.py --plot docs/images/peers.svg
	.venv-bench/bin/python benchmarks/contest.py --data $(DATA)
	.venv-bench/bin/python benchmarks/deep_parts.py --data $(DATA)
	.venv-bench/bin/python benchmarks/deep_step.py
	.venv-bench/bin/python benchmarks/deep_tasks.py
	.venv-bench/bin/python benchmarks/growth.py
	.venv-bench/bin/python benchmarks/printed_vs_exact.py
	.venv-bench/bin/python benchmarks/an4_errors.py --data $(DATA)
	.venv-bench/bin/python benchmarks/forecasting.py
	.venv-bench/bin/python benchmarks/large.py --data $(DATA)

tables: $(VENV)/ready  ## the tables and pictures of README.md and docs/ from benchmarks/results/
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python benchmarks/result_pictures.py

series: .venv-series/ready  ## whole series to classes beside MiniRocket, MultiRocket-Hydra and QUANT; UCR=path/to/folder
	.venv-series/bin/python benchmarks/sequences.py $(UCR)

defaults: .venv-series/ready  ## every estimator with its defaults, ten seeds, beside what others would use; DATA=path/to/an4_states.npz
	.venv-series/bin/python benchmarks/defaults.py $(if $(wildcard $(DATA)),--data $(DATA))

examples: $(VENV)/ready  ## the pictures of examples/, into runs/examples
	$(BIN)/python tools/pictures.py

notebooks: $(VENV)/ready  ## the examples as executed notebooks, into runs/notebooks; fails on any line on stderr (docs/howto/notebooks.md)
	$(BIN)/python tools/notebooks.py

reliability: $(VENV)/ready .venv-fuzz/ready  ## long runs: damaged files, odd inputs, stress, load, kills (docs/evidence/reliability.md)
	$(BIN)/python -m reliability.model_files
	$(BIN)/python -m reliability.damaged_speech
	$(BIN)/python -m reliability.inputs
	.venv-fuzz/bin/python -m reliability.fuzz
	$(BIN)/python -m reliability.stress
	$(BIN)/python -m reliability.random_series
	$(BIN)/python -m reliability.exports
	$(BIN)/python -m reliability.service_hostile
	$(BIN)/python -m reliability.service_load
	$(BIN)/python -m reliability.load
	$(BIN)/python -m reliability.corpus_on_disk
	$(BIN)/python -m reliability.kills
	$(BIN)/python -m reliability.dask_kills
	$(BIN)/python -m reliability.dask_speed

mutants: $(VENV)/ready  ## choices made otherwise, one at a time: does a test fail? (docs/evidence/reliability.md); SEED=2 draws others
	$(BIN)/python -m reliability.mutants --seed $(or $(SEED),1)

.venv-fuzz/ready: reliability/requirements-fuzz.txt pyproject.toml
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/bin/python -m pip install --quiet -r reliability/requirements-fuzz.txt --editable '.[speech]'
	touch $@

forecasts: .venv-forecasts/ready  ## forecasts of real series, side by side with statsforecast and reservoirpy
	.venv-forecasts/bin/python benchmarks/series_forecasts.py

# pmdarima and vega_datasets by themselves: only their data are read
.venv-forecasts/ready: benchmarks/requirements-forecasts.txt pyproject.toml
	$(PYTHON) -m venv .venv-forecasts
	grep -v -e pmdarima -e vega_datasets benchmarks/requirements-forecasts.txt > .venv-forecasts/needed.txt
	.venv-forecasts/bin/python -m pip install --quiet -r .venv-forecasts/needed.txt --editable .
	.venv-forecasts/bin/python -m pip install --quiet --no-deps pmdarima==2.1.1 vega_datasets==0.9.0
	touch $@

.venv-interop/ready: tests/interop/requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv-interop
	.venv-interop/bin/python -m pip install --quiet -r tests/interop/requirements.txt --editable .
	touch $@

.venv-series/ready: benchmarks/requirements-series.txt pyproject.toml
	$(PYTHON) -m venv .venv-series
	.venv-series/bin/python -m pip install --quiet -r benchmarks/requirements-series.txt --editable .
	touch $@

# torch first and by its exact pin: asked for in any other way it brings gigabytes of CUDA packages
.venv-bench/ready: benchmarks/requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet torch==2.13.0
	.venv-bench/bin/python -m pip install --quiet -r benchmarks/requirements.txt --editable '.[speech]'
	touch $@

# the lock file is complete, the build backend included: with --no-deps nothing is resolved anew, so that a later release of a
# package with extras (coverage[toml]) cannot be asked for without a hash
$(VENV)/ready: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(if $(LOCKED),\
	  $(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements.lock && \
	  $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . ,\
	  $(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS)]')
	$(BIN)/python -m pip check
	touch $@

.venv-uv/ready:
	$(PYTHON) -m venv .venv-uv
	.venv-uv/bin/python -m pip install --quiet uv
	touch $@

.venv-oldest/ready: pyproject.toml .venv-uv/ready
	$(PYTHON) -m venv .venv-oldest
	.venv-uv/bin/uv pip install --quiet --python .venv-oldest --resolution lowest-direct --editable '.[$(EXTRAS)]'
	touch $@

.venv-newest/ready: pyproject.toml
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[$(EXTRAS)]'
	touch $@

clean:
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .coverage
