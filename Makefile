# The project's commands. Everything they need goes into .venv (benchmarks: .venv-bench).
PYTHON ?= python3
BIN := .venv/bin
DATA ?= ../shared/data/an4_states.npz

.PHONY: demo test lint bench series examples clean

demo: .venv/ready  ## the main job
	$(BIN)/echolearn table1

test: .venv/ready lint  ## all the tests, with coverage
	$(BIN)/python -m pytest --cov --cov-report=term

lint: .venv/ready  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv-bench/ready  ## side by side with other libraries; DATA=path/to/an4_states.npz
	.venv-bench/bin/python benchmarks/peers.py --data $(DATA)
	.venv-bench/bin/python benchmarks/error_over_time.py --data $(DATA) --plot docs/images/error_over_time.svg
	.venv-bench/bin/python benchmarks/gram.py --data $(DATA)
	.venv-bench/bin/python benchmarks/growth.py
	.venv-bench/bin/python benchmarks/printed_vs_exact.py
	.venv-bench/bin/python benchmarks/an4_errors.py --data $(DATA)
	.venv-bench/bin/python benchmarks/forecasting.py
	.venv-bench/bin/python benchmarks/large.py --data $(DATA)

series: .venv-series/ready  ## whole sequences to classes, side by side with other libraries
	.venv-series/bin/python benchmarks/series.py

examples: .venv/ready  ## the pictures of examples/, into runs/examples
	mkdir -p runs/examples
	for example in examples/plot_*.py; do \
	  echo $$example && MPLBACKEND=agg $(BIN)/python $$example runs/examples/$$(basename $$example .py).png || exit 1; done

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

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[speech,report,tune,dask,test]'
	touch $@

clean:
	rm -rf .venv .venv-bench .venv-series .pytest_cache .mypy_cache .ruff_cache .coverage
