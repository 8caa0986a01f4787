# What people and CI call. Everything is installed into .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo model test test-hf browser lint format bench picture clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | sort

setup: $(VENV)/.ready ## Create .venv with everything that demo, test and lint need

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "demur needs Python 3.11 or newer; point PYTHON at one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: setup ## Sample a real small model, calibrate it, check it, ask it
	@$(BIN)/demur demo --folder demo

model: setup ## Fetch the embedded model's weights, once
	@$(BIN)/demur models

test: setup lint model ## Lint, type-check, check the layers and run the tests
	$(BIN)/python -m pytest -n auto --ignore=tests/hf $(TESTS)
	@$(BIN)/python tests/browser/chromium.py
	@echo "Left out: tests/hf, the tests that need torch and transformers. Run them with: make test-hf"

test-hf: $(VENV)/.ready-hf ## Run the tests that need torch and transformers (installs them, about 1 GB)
	$(BIN)/python -m pytest tests/hf

$(VENV)/.ready-hf: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable '.[dev,hf]'
	@touch $@

browser: ## Install Chromium, for the tests of the report's page, where there is none
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq chromium; } || echo "Chromium could not be installed here."

lint: setup ## Style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: setup ## Rewrite the source in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## Measure speed against peers, in an environment of its own
	@$(BIN)/python benchmarks/run.py

picture: setup ## Draw the pictures of the README again
	$(BIN)/python docs/picture.py
	$(BIN)/python docs/report_picture.py

clean: ## Remove what the other targets made
	rm -rf $(VENV) .bench-venv .bench-peers demo
