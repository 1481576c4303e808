# Everything here works on a fresh machine with Python >= 3.11, make and PyPI: each target makes what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements/dev.lock

.DEFAULT_GOAL := help
.PHONY: help install demo test quick e2e gpu check format lint types floors bench compiled docs dist lock clean

help: ## What can be made
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):.*## /  make \1\t/' | expand -t 18

# Users get the product with all its parts; developers get the locked tools as well.
$(BIN)/shoal: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Shoal needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@test -x $(BIN)/python || { echo "Making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing Shoal into $(VENV) (once, about half a minute)"
	@echo "  1/2 the locked dependencies of requirements/run.lock"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.lock
	@echo "  2/2 the command shoal"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/shoal $(LOCK)
	@echo "Installing the developers' tools into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	@touch $@

install: $(BIN)/shoal ## The command: .venv/bin/shoal
	@echo "$(BIN)/shoal is there"

demo: $(BIN)/shoal ## A Kubernetes cluster with 128 GPUs and three teams' work on it, live in your terminal
	@$(BIN)/shoal up --demo

# Python keeps compiled modules, even if the shell disables this. Otherwise each worker, and each `shoal` process that a
# test starts, would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

# Two workers more than cores: two workers begin with tests that wait for a cluster in another process (tests/conftest.py).
# A worker that has finished takes tests from others.
WORKERS ?= $(shell expr $$(nproc) + 2)
# Compiles the tests once in a clean clone, so that the workers do not compile the same files at the same time. The
# workers report errors themselves.
COMPILED := test -d tests/__pycache__ || $(BIN)/pytest -q --collect-only >/dev/null || true

test: $(VENV)/.dev ## All tests
	@$(COMPILED)
	@$(BIN)/pytest -q -n $(WORKERS) --dist worksteal

quick: $(VENV)/.dev ## Quick tests only
	@$(COMPILED)
	@$(BIN)/pytest -q -n auto -m 'not slow'

e2e: $(VENV)/.dev ## Tests with external programs (promtool) and whole installations; with SHOAL_TEST_KUBECONFIG also the contracts on that cluster
	@SHOAL_E2E=1 $(BIN)/pytest -q -m 'external or e2e'
	@test -z "$$SHOAL_TEST_KUBECONFIG" || $(BIN)/pytest -q -n 4 tests/contracts

gpu: $(VENV)/.dev ## Tests that read the NVIDIA GPUs of this machine and change nothing on them
	@$(BIN)/pytest -q -rs -m gpu tests/agent

check: format lint types floors test ## All that CI checks: format, lint, strict types, floors, tests

format: $(VENV)/.dev ## Check the format (make format-fix corrects it)
	@$(BIN)/ruff format --check src tests bench tools

.PHONY: format-fix
format-fix: $(VENV)/.dev
	@$(BIN)/ruff format src tests bench tools
	@$(BIN)/ruff check --fix src tests bench tools

lint: $(VENV)/.dev ## Lint
	@$(BIN)/ruff check src tests bench tools

types: $(VENV)/.dev ## Strict types
	@$(BIN)/mypy

floors: $(VENV)/.dev ## Check that imports go down only
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

bench: $(VENV)/.dev ## Measure the figures of docs/performance.md, each beside its target
	@$(BIN)/python -m bench.run

compiled: $(VENV)/.dev ## A copy in out/compiled whose engine is compiled to C (docs/designs/003-compiled-engine.md)
	@$(BIN)/python -m tools.compile_engine

# The generator has an environment of its own: neither users nor `make test` install it.
DOCS := out/docs-tools
$(DOCS)/.installed: requirements/docs.lock
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	@echo "Installing the generator of the documentation into $(DOCS) (once)"
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.lock
	@touch $@

docs: $(DOCS)/.installed ## The documentation site in out/site; a broken link is an error
	@$(DOCS)/bin/sphinx-build --quiet --fail-on-warning --keep-going --conf-dir docs . out/site
	@echo "out/site/index.html is there"

# Tools that only a release needs, in an environment of their own as well.
RELEASE := out/release-tools
$(RELEASE)/.installed: requirements/release.lock
	@test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	@echo "Installing the tools of a release into $(RELEASE) (once)"
	@$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.lock
	@touch $@

dist: $(VENV)/.dev $(RELEASE)/.installed ## Wheel, source distribution, SBOM, licenses and checksums, in dist/ (docs/release.md)
	@rm -rf dist
	@$(BIN)/python -m hatchling build -d dist > /dev/null
	@$(RELEASE)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --of JSON -o dist/shoal.cdx.json requirements/run.lock
	@$(RELEASE)/bin/pip-licenses --python $(BIN)/python --format markdown --order license --output-file dist/LICENSES.md > /dev/null \
	  --packages $$(sed -nE 's/^([A-Za-z0-9_.-]+)==.*/\1/p' requirements/run.lock)
	@cd dist && sha256sum * > SHA256SUMS
	@ls dist

.PHONY: image
image: $(VENV)/.dev ## The container image shoal:VERSION (docs/image.md); IMAGE='--platform linux/arm64' for another processor
	@$(BIN)/python -m tools.image $(IMAGE)

.PHONY: chart
chart: $(VENV)/.dev ## Renew the generated files of charts/shoal and deploy/kustomize
	@$(BIN)/python -m tools.chart

schemas: $(VENV)/.dev ## Renew the schemas of Kubernetes (KUBECTL=path of a current kubectl)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --target out/schemas 'kubernetes-validate>=1.37'
	@$(BIN)/python -m tools.kubernetes_schemas --kubectl $(or $(KUBECTL),kubectl) --schemas out/schemas/kubernetes_validate/kubernetes-json-schema
	@$(BIN)/python -m tools.kubernetes_protobuf --kubectl $(or $(KUBECTL),kubectl)

lock: $(VENV)/.dev ## Renew the locked dependencies
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip-tools>=7.5'
	@$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links --extra all --constraint requirements/run.in --output-file requirements/run.lock pyproject.toml
	@$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links --allow-unsafe --output-file $(LOCK) requirements/dev.in
	@$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links --output-file requirements/docs.lock requirements/docs.in
	@$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links --output-file requirements/release.lock requirements/release.in

clean: ## Remove built files
	@rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
