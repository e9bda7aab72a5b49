# `make bench` and `make test` set up all they need, once; `make help` lists the rest.

.DEFAULT_GOAL := setup
.DELETE_ON_ERROR:
.NOTPARALLEL:

VENV := .venv
PY := $(VENV)/bin/python
TORCH_VENV := .venv-torch
TORCH_PY := $(TORCH_VENV)/bin/python
STEP := .ci/step

# The first CPython that is new enough; once there is a .venv, its own. `make PYTHON=...` names another.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
CANDIDATES := $(PY) python3 python3.14 python3.13 python3.12 python3.11
PYTHON ?= $(shell for p in $(CANDIDATES); do $$p -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$p && exit; done; echo python3)

# A tree without version control, or one that git distrusts, builds too; a go.work further up is not ours.
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)
export GOWORK := off
export CGO_ENABLED := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

GO_DIRS := $(filter-out build/ python/ benches/,$(wildcard */))
PY_PATHS := python tests benches
IN_PARALLEL := --numprocesses auto --maxprocesses 8 --dist worksteal

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.* ## /  make \1\t/p' Makefile | expand -t 20

## Set-up

.PHONY: setup
setup: extension $(VENV)/.installed ## .venv with the pinned packages, the Go core and the torchemu command

.PHONY: prerequisites
prerequisites:
	@[ ! -e $(VENV)/.created ] || $(PY) -c '' || { echo '$(VENV) is of a Python that is gone: run `make clean` first.'; exit 1; }
	@sh python/build_backend/prerequisites.sh setup $(PYTHON)

$(VENV)/.created: | prerequisites
	@$(STEP) "creating $(VENV) with $$($(PYTHON) --version)" $(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.requirements: python/requirements.lock $(VENV)/.created
	@$(STEP) "installing the pinned Python packages" $(PY) -m pip install --quiet --requirement $<
	@touch $@

# The script knows its inputs and does nothing when the extension is up to date.
.PHONY: extension
extension: prerequisites $(VENV)/.requirements
	@$(PY) python/build_backend/extension.py

$(VENV)/.installed: pyproject.toml python/build_backend/hatch_build.py $(VENV)/.requirements | extension
	@$(STEP) "installing torchemu in place" \
		$(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# The installed PyTorch as front end: another environment, for what needs it is gigabytes on some platforms.
.PHONY: torch
torch: setup $(TORCH_VENV)/.installed ## .venv-torch with the pinned PyTorch and torchemu, for --torch real

$(TORCH_VENV)/.created: $(VENV)/.created
	@$(STEP) "creating $(TORCH_VENV)" $(PY) -m venv --clear $(TORCH_VENV)
	@touch $@

$(TORCH_VENV)/.requirements: python/requirements.lock python/requirements-torch.lock $(TORCH_VENV)/.created
	@$(STEP) "installing the pinned PyTorch" $(TORCH_PY) -m pip install --quiet \
		--requirement python/requirements.lock --requirement python/requirements-torch.lock
	@touch $@

$(TORCH_VENV)/.installed: pyproject.toml python/build_backend/hatch_build.py $(TORCH_VENV)/.requirements
	@$(STEP) "installing torchemu in place, beside PyTorch" \
		$(TORCH_PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

## Benches

.PHONY: bench
bench: setup ## run benches/ccl_allreduce.py
	@$(PY) benches/ccl_allreduce.py

.PHONY: perf-torch
perf-torch: torch ## what the installed PyTorch costs on ranks, beside its targets and gloo
	@$(TORCH_PY) benches/perf_torch.py

.PHONY: perf
perf: setup ## run the benchmarks and compare them with their targets
	@$(PY) benches/perf.py

.PHONY: fidelity
fidelity: prerequisites ## compare predictions with real machines, and write docs/fidelity.md
	@go run ./benches/fidelity -o docs/fidelity.md

## Tests

.PHONY: test
test: lint test-go test-python ## linters, Go tests, Python tests

.PHONY: lint
lint: lint-go lint-python ## gofmt, vet, staticcheck, tidy; ruff, mypy

.PHONY: lint-go
lint-go: prerequisites
	@$(STEP) "gofmt" sh -c 'gofmt -d $(GO_DIRS) | (! grep .)'
	@$(STEP) "go mod tidy" go mod tidy -diff
	@$(STEP) "go vet" go vet ./...
	@$(STEP) "staticcheck" go tool staticcheck ./...

.PHONY: lint-python
lint-python: setup
	@$(STEP) "ruff check" $(VENV)/bin/ruff check --quiet $(PY_PATHS)
	@$(STEP) "ruff format" $(VENV)/bin/ruff format --quiet --diff $(PY_PATHS)
	@$(STEP) "mypy" $(VENV)/bin/mypy --no-error-summary

.PHONY: test-go
test-go: prerequisites
	@$(STEP) "go test" go test -vet=off ./...

.PHONY: race
race: prerequisites ## the Go tests with Go's race detector, but for what takes it minutes
	@$(STEP) "go test -race" go test -race -short -vet=off ./...

.PHONY: test-python
test-python: setup
	@$(STEP) "pytest" $(PY) -m pytest $(IN_PARALLEL)

.PHONY: test-torch
test-torch: torch ## the tests of the front end for the installed PyTorch
	@$(STEP) "pytest with PyTorch" $(TORCH_PY) -m pytest $(IN_PARALLEL) tests/python/frontends/torch

.PHONY: torch-conformance
torch-conformance: torch ## PyTorch's own tests of torch.distributed on 4 ranks, with counts
	@$(TORCH_PY) tests/python/frontends/torch/conformance.py

## Upkeep

.PHONY: fmt
fmt: setup ## format Go and Python
	gofmt -w $(GO_DIRS)
	$(VENV)/bin/ruff check --fix $(PY_PATHS)
	$(VENV)/bin/ruff format $(PY_PATHS)

.PHONY: stubs
stubs: setup ## write the stubs by which type checkers know the names of torchemu
	@$(PY) -W ignore python/build_backend/stubs.py

.PHONY: clean
clean: ## remove .venv and everything built
	rm -rf $(VENV) $(TORCH_VENV) build dist python/torchemu/_core .pytest_cache .ruff_cache .mypy_cache
	find $(PY_PATHS) -name __pycache__ -type d -prune -exec rm -rf {} +
