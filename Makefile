# What people and CI call. Everything is installed into .venv, and biome into node_modules; nothing else is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSPECT := .inspect-venv
BIOME := node_modules/.bin/biome
# One more than there are processors: many tests wait, for servers that are slow and processes that are killed.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# pip, with one line per package as it comes; the exit code is pip's.
INSTALL = install() { { $(BIN)/python -m pip install --progress-bar off --editable "$$1"; echo $$? > $(VENV)/.status; } | \
  awk '/^Collecting/ { print "  " $$2; fflush() }'; return $$(cat $(VENV)/.status); }; install

.PHONY: help setup demo model test test-hf test-neighbours test-ray browser lint lint-page format docs bench picture release clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | sort

setup: $(VENV)/.ready ## Create .venv with everything that demo, test and lint need

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "demur needs Python 3.11 or newer; point PYTHON at one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "Installing demur, all its parts but torch, and the tools of its tests into $(VENV) (about 1 GB):"
	@$(INSTALL) '.[dev]'
	@touch $@ $(VENV)/.ready-demo

$(VENV)/.ready-demo: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "Installing demur, the runtime of the small model and the service into $(VENV) (about 300 MB):"
	@$(INSTALL) '.[local,serve]'
	@touch $@

demo: $(VENV)/.ready-demo ## Sample a real small model, calibrate it, check it, ask it, serve it
	@$(BIN)/demur demo --folder demo

model: setup ## Fetch the embedded model's weights, once
	@$(BIN)/demur models

test: setup lint model ## Lint, type-check, check the layers and run the tests
	$(BIN)/python -m pytest -n $(WORKERS) --ignore=tests/hf --ignore=tests/neighbours --ignore=tests/on_ray $(TESTS)
	@$(BIN)/python tests/browser/chromium.py
	@echo "Left out: tests/hf, the tests that need torch and transformers. Run them with: make test-hf"
	@echo "Left out: tests/neighbours, the tests on logs that inspect-ai writes, and those on S3. Run them with: make test-neighbours"
	@echo "Left out: tests/on_ray, the tests of a Ray cluster. Run them with: make test-ray"

test-neighbours: setup $(INSPECT)/.ready ## Run the tests on logs that inspect-ai itself writes, and on an S3 server (installs both, about 500 MB)
	INSPECT_PYTHON=$(CURDIR)/$(INSPECT)/bin/python MOTO_SERVER=$(CURDIR)/$(INSPECT)/bin/moto_server \
	  $(BIN)/python -m pytest tests/neighbours tests/pools/test_remote_tables.py

# In an environment of its own, and at the versions it asks for: nothing of demur runs there.
$(INSPECT)/.ready: Makefile
	@echo "Installing inspect-ai and moto into $(INSPECT) (about 500 MB):"
	@$(PYTHON) -m venv $(INSPECT)
	@PIP_CONSTRAINT= $(INSPECT)/bin/python -m pip install --quiet inspect-ai==0.3.285 openai==3.49.0 \
	  "moto[s3,server]==5.2.5"
	@touch $@

test-hf: $(VENV)/.ready-hf ## Run the tests that need torch and transformers (installs them, about 1 GB)
	$(BIN)/python -m pytest tests/hf

$(VENV)/.ready-hf: $(VENV)/.ready
	@echo "Installing torch and transformers into $(VENV) (about 1 GB):"
	@$(INSTALL) '.[dev,hf]'
	@touch $@

# In an environment of its own: Ray pins and brings much that nothing else here needs.
test-ray: .venv-ray/.ready model ## Run the tests of a real Ray cluster (installs Ray, about 600 MB)
	.venv-ray/bin/python -m pytest tests/on_ray

.venv-ray/.ready: pyproject.toml constraints.txt
	@echo "Installing demur and Ray into .venv-ray (about 600 MB):"
	@test -x .venv-ray/bin/python || $(PYTHON) -m venv .venv-ray
	@.venv-ray/bin/python -m pip install --quiet --editable '.[http,local,parquet,ray]' 'pytest>=9' 'hypothesis>=6.100'
	@touch $@

browser: ## Install Chromium, for the tests of the report's page, where there is none
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq chromium; } || echo "Chromium could not be installed here."

lint: setup ## Style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	@if command -v node >/dev/null; then $(MAKE) --no-print-directory lint-page; \
	  else echo "Left out: lint-page, the style of the pages, for there is no node here."; fi

# Each file by itself; then all of them joined, as they are in the page, for names that are unused or undeclared there.
lint-page: $(BIOME) ## Style of the pages (needs node, installs biome)
	$(BIOME) check --error-on-warnings
	@joined=$$(mktemp -d) && trap 'rm -r "$$joined"' EXIT && cat src/demur/reports/*.js > "$$joined/script.js" && \
	  cd "$$joined" && $(CURDIR)/$(BIOME) lint --error-on-warnings \
	    --only=correctness/noUnusedVariables --only=correctness/noUndeclaredVariables script.js

$(BIOME): package.json
	npm install --no-package-lock --no-audit --no-fund
	@touch $@

format: setup ## Rewrite the source in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@if command -v node >/dev/null; then $(MAKE) --no-print-directory $(BIOME) && $(BIOME) check --write; fi

# Never --quiet: it drops the warnings that --strict counts.
docs: $(VENV)/.ready-docs ## Build the documentation as a site in site/, every link checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/.ready-docs: $(VENV)/.ready
	@$(INSTALL) '.[dev,docs]'
	@touch $@

bench: setup ## Measure speed against peers and write docs/benchmarks.md; ONLY=voting_speed: that script alone
	@$(BIN)/python benchmarks/run.py $(ONLY)

picture: setup ## Draw the pictures of the README and the docs again
	$(BIN)/python docs/picture.py
	$(BIN)/python docs/report_picture.py
	$(BIN)/python docs/draw_plots.py

release: setup ## Build wheel and sdist, and try each in a clean environment on every supported Python at hand
	@$(BIN)/python tools/release.py

clean: ## Remove what the other targets made
	rm -rf $(VENV) $(INSPECT) .venv-ray node_modules .bench-venv .bench-peers demo dist site
