# Every command of this checkout. Each one sets up what it needs in .venv; PYTHON=... names the interpreter to make it with.
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# Hundreds of interpreters are started here: each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
READY := .venv/ready
# More than cores: the tests of the local cloud mostly wait.
TEST_PROCESSES ?= 4

.PHONY: help
help: ## list the commands
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: demo
demo: $(READY) ## one forecast from submit message to cleaned-up machine, in the local cloud
	@$(BIN)/runtender local demo

.PHONY: test
test: $(READY) ## everything: the checks, then all tests
	@$(MAKE) --jobs=2 check collect
	@echo "==> pytest"
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal

# Beside the type checker, which uses one core: all that it compiles, each test process would compile for itself.
.PHONY: collect
collect: $(READY)
	@echo "==> pytest, collecting"
	@told=$$($(BIN)/python -m pytest --collect-only --quiet) || { tail -n 100 <<<"$$told"; exit 1; }

.PHONY: scenarios
scenarios: $(READY) ## every shipped scenario of the local cloud, on real processes; some on Google's emulators too
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) -m "" -v tests/e2e/test_scenarios.py tests/e2e/test_google_backend.py

.PHONY: proofs
proofs: $(READY) ## the simulation's tests with what they leave out each time: a handler held after every call for every span, deaths at every call of long plots
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal -m "" tests/simulation

.PHONY: acceptance
acceptance: $(READY) ## every row of the specification that has a test, and which rows have none and why
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) -q -k acceptance
	@$(BIN)/python tests/unit/test_acceptance.py

.PHONY: check
check: lint types layers shell docker ## lint, types, layers, shell scripts, Dockerfiles

.PHONY: lint
lint: $(READY)
	@echo "==> ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

.PHONY: types
types: $(READY)
	@echo "==> mypy"
	@$(BIN)/mypy

.PHONY: layers
layers: $(READY)
	@echo "==> import-linter"
	@$(BIN)/lint-imports --no-logo

.PHONY: shell
shell: $(READY)
	@echo "==> shellcheck"
	@.ci/lint-shell

.PHONY: docker
docker: $(READY)
	@echo "==> hadolint"
	@find docker -name 'Dockerfile*' -print0 | xargs -0 --no-run-if-empty $(BIN)/hadolint

SEEDS ?= 2000
PAIRS ?=

.PHONY: simulate
simulate: $(READY) ## play SEEDS worlds of each kind, drawn by chance, against the plane's rules; with PAIRS=all every pair of crashes besides
	$(if $(filter-out all,$(PAIRS)),$(error PAIRS is 'all' or is left out))
	@$(BIN)/python -m runtender.local.simulation --seeds $(SEEDS) $(if $(PAIRS),--pairs)

.PHONY: bench
bench: $(READY) ## what the plane costs in calls, time and memory, against what cannot be done without
	@$(BIN)/python tests/bench/run.py

.PHONY: reference
reference: $(READY) ## write the command line's reference page anew
	@$(BIN)/python -m runtender.cli.reference

.PHONY: fuzz
fuzz: $(READY) ## 10,000 submit messages nobody would think of, through the intake
	@RUNTENDER_FUZZ_EXAMPLES=10000 $(BIN)/python -m pytest -q -p no:logging --timeout 3600 --hypothesis-show-statistics \
		tests/unit/engine/test_intake_fuzz.py

.PHONY: fmt
fmt: $(READY) ## format and sort the code
	@$(BIN)/ruff check --select I --fix --quiet .
	@$(BIN)/ruff format --quiet .

# What is deployed is what was tested: the functions' and the worker's locks take their versions from the tests' lock.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url
EXTRA_WORKER := $(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["worker"], sep="\n")'

.PHONY: lock
lock: $(READY) ## write the lock files anew with the newest versions that pyproject.toml allows
	@echo "==> tests/build-requirements.txt"
	@$(COMPILE) --upgrade --group build --output-file tests/build-requirements.txt
	@echo "==> tests/requirements.txt"
	@$(COMPILE) --upgrade --extra local --group test --group check pyproject.toml --output-file tests/requirements.txt
	@echo "==> functions/requirements.txt"
	@$(COMPILE) --constraint tests/requirements.txt pyproject.toml --output-file functions/requirements.txt
	@echo "==> docker/worker/requirements.txt"
	@$(EXTRA_WORKER) | $(COMPILE) --constraint tests/requirements.txt - --output-file docker/worker/requirements.txt
	@echo "==> docker/ray/requirements.txt"
	@$(COMPILE) --constraint tests/requirements.txt --group ray --output-file docker/ray/requirements.txt

.PHONY: indexes
indexes: $(READY) ## write the indexes and expiries that Terraform gives Firestore anew from the code's queries
	@$(BIN)/python infra/firestore_indexes.py

.PHONY: infra
infra: $(READY) ## what can be checked of infra/ without a project; with Terraform's own checks where it is installed
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) -q tests/infra

.PHONY: schemas
schemas: $(READY) ## write the JSON Schemas of message, config and marker anew from the code
	@$(BIN)/python -c 'from pathlib import Path; from runtender.wire.schemas import schema_documents; \
	  [Path("shared/runtender/schemas", name).write_text(text) for name, text in schema_documents().items()]'

.PHONY: permissions
permissions: $(READY) ## write the deployment's roles and their page for reviewers anew from the table in the code
	@$(BIN)/python -m runtender.permissions

.PHONY: bundle
bundle: $(READY) ## write the zip of the functions that is deployed, and tell its size and cold starts
	@bundle=$$($(BIN)/python functions/bundle.py) && $(BIN)/python -m tests.bench.bundle "$$bundle"

.PHONY: clean
clean: ## remove the environment, the caches and what the local cloud left
	@rm -rf .venv .runtender .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml tests/build-requirements.txt tests/requirements.txt
	@.ci/environment
