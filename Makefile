# The project's commands. Everything they need goes into .venv (benchmarks: .venv-bench).
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench clean

demo: .venv/ready  ## the main job
	$(BIN)/echolearn demo

test: .venv/ready lint  ## all the tests, with coverage
	$(BIN)/python -m pytest --cov --cov-report=term

lint: .venv/ready  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[speech,report,test]'
	touch $@

clean:
	rm -rf .venv .venv-bench .pytest_cache .mypy_cache .ruff_cache .coverage
