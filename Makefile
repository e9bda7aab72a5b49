# `make bench` and `make test` set up all they need, once; `make help` lists the rest.

.DEFAULT_GOAL := setup
.DELETE_ON_ERROR:
.NOTPARALLEL:

VENV := .venv
PY := $(VENV)/bin/python
TORCH_VENV := .venv-torch
TORCH_PY := $(TORCH_VENV)/bin/python
NEWEST_VENV := .venv-torch-newest
NEWEST_PY := $(NEWEST_VENV)/bin/python
BROWSER := build/browser
PYRIGHT := build/pyright
LIBRARIES := build/libraries
DOCS := build/docs
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
	@sed -n 's/^\([a-z-]*\):.* ## /  make \1\t/p' Makefile | expand -t 27

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

# The same of the newest PyTorch that is supported.
$(NEWEST_VENV)/.created: $(VENV)/.created
	@$(STEP) "creating $(NEWEST_VENV)" $(PY) -m venv --clear $(NEWEST_VENV)
	@touch $@

$(NEWEST_VENV)/.requirements: python/requirements.lock python/requirements-torch-newest.lock $(NEWEST_VENV)/.created
	@$(STEP) "installing the newest PyTorch" $(NEWEST_PY) -m pip install --quiet \
		--requirement python/requirements.lock --requirement python/requirements-torch-newest.lock
	@touch $@

$(NEWEST_VENV)/.installed: pyproject.toml python/build_backend/hatch_build.py $(NEWEST_VENV)/.requirements
	@$(STEP) "installing torchemu in place, beside the newest PyTorch" \
		$(NEWEST_PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
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
test: lint test-go test-python ## linters, Go tests, Python tests, but for the slow ones

.PHONY: test-all
test-all: test test-slow race test-browser test-types docs build-elsewhere ## all tests but with the newest PyTorch; an hour
test-all: test-torch test-torch-slow test-libraries

.PHONY: test-slow
test-slow: setup ## all Go tests, and the Python tests that are marked slow
	@$(STEP) "go test, the slow ones too" go test -timeout 30m -vet=off ./...
	@$(STEP) "pytest of slow tests" $(PY) -m pytest $(IN_PARALLEL) -m slow

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
	@$(STEP) "go test" go test -timeout 30m -short -vet=off ./...

# Where Go may fuse a multiplication and an addition, results must stay what they are: goldens are compared here, too.
# The package tests looks at the source, and runs Go itself, which qemu does not; nor does it give back memory by madvise.
.PHONY: test-arm64
test-arm64: prerequisites ## the Go tests but for the doors, as linux/arm64, under Debian's qemu-user-static
	@$(STEP) "go test, linux/arm64" env GOARCH=arm64 CGO_ENABLED=0 go test -short -vet=off -timeout 60m \
		-skip '^TestBigBlocksBeyondThePeakGoBackToTheSystem$$' -exec qemu-aarch64-static \
		$$(go list ./... | grep -v -e /pybind -e /tests$$)

.PHONY: race
race: prerequisites ## the Go tests with Go's race detector, but for what takes it minutes
	@$(STEP) "go test -race" go test -timeout 30m -race -short -vet=off ./...

.PHONY: test-python
test-python: setup
	@$(STEP) "pytest" $(PY) -m pytest $(IN_PARALLEL) -m 'not slow'

.PHONY: test-torch
test-torch: torch ## the tests of the front end for the installed PyTorch, but for the slow ones
	@$(STEP) "pytest with PyTorch" $(TORCH_PY) -m pytest $(IN_PARALLEL) -m 'not slow' tests/python/frontends/torch

# What ranks have of their own they have with either torch; these tests get the installed one, too. Left out: who imports
# PyTorch keeps its variables against compilers, and its module; and a device's numbers are those of its own tests.
ISOLATION := tests/python/launch/test_isolation.py
PROCESSES := tests/python/launch/test_as_processes.py
OWN := tests/python/launch/test_own_attributes.py \
	$(addprefix tests/python/launch/test_,event_loops.py left_out_groups.py set_orders.py threads.py polls.py) \
	$(addprefix tests/python/launch/test_threads_,ends.py time.py) \
	$(addprefix tests/python/launch/test_,shared_attributes.py signals.py unwaited.py) \
	$(ISOLATION) $(addprefix --deselect $(ISOLATION)::test_,functions_are_as_before a_device_draws_numbers_of_its_own) \
	$(PROCESSES) --deselect $(PROCESSES)::test_the_environment_is_as_before_after_a_run

.PHONY: test-torch-slow
test-torch-slow: torch ## those of them that are marked slow, and with PyTorch those of what ranks have of their own
	@$(STEP) "pytest of slow tests with PyTorch" $(TORCH_PY) -m pytest $(IN_PARALLEL) -m slow tests/python/frontends/torch
	@$(STEP) "pytest of ranks with PyTorch" $(TORCH_PY) -m pytest $(IN_PARALLEL) $(OWN)

# What versions of PyTorch differ in: words, operations, groups, graphs, symmetric memory; and that models train.
NEWEST := $(addprefix tests/python/frontends/torch/test_,torch_training.py recorded.py recorded_nccl.py devices.py cuda.py \
	host_work.py wild.py programs.py ahead.py nn_functional.py fake_tensors.py registered_groups.py nccl_methods.py \
	torch_group_calls.py torch_c10d.py torch_jit.py torch_loggers.py torch_profiles.py symmetric_multimem.py)

.PHONY: test-newest
test-newest: setup $(NEWEST_VENV)/.installed ## some of these tests with the newest PyTorch that is supported
	@$(STEP) "pytest with the newest PyTorch" $(NEWEST_PY) -m pytest $(IN_PARALLEL) $(NEWEST)

# Libraries of others that train with PyTorch; beside .venv-torch, so that `make test-torch` is the same with them and without.
$(LIBRARIES)/.installed: python/requirements-libraries.lock $(TORCH_VENV)/.installed
	@$(STEP) "installing transformers, accelerate, Lightning, torchmetrics and Megatron-core" \
		$(TORCH_PY) -m pip install --quiet --no-deps --upgrade --target $(LIBRARIES) --requirement $<
	@touch $@

.PHONY: test-libraries
test-libraries: torch $(LIBRARIES)/.installed ## training with libraries of others, compared with gloo's processes
	@$(STEP) "pytest of libraries" env PYTHONPATH=$(CURDIR)/$(LIBRARIES) $(TORCH_PY) -m pytest $(IN_PARALLEL) tests/python/libraries

.PHONY: fuzz
fuzz: SECONDS ?= 600
fuzz: torch ## random programs on gloo and on torchemu, compared, for SECONDS=600
	@PYTHONPATH=tests $(TORCH_PY) -m fuzz --seconds $(SECONDS)

.PHONY: torch-conformance
torch-conformance: torch ## PyTorch's own tests of torch.distributed on 4 ranks, with counts
	@$(TORCH_PY) tests/python/frontends/torch/conformance.py

# Playwright drives the system's Chromium. It is beside .venv, so that `make test` is the same with it and without.
$(BROWSER)/.installed: python/requirements-browser.lock $(VENV)/.installed
	@$(STEP) "installing Playwright" $(PY) -m pip install --quiet --no-deps --upgrade --target $(BROWSER) --requirement $<
	@touch $@

.PHONY: test-browser
test-browser: setup $(BROWSER)/.installed ## the tests of the report's page in Chromium; pictures go to build/screenshots
	@$(STEP) "pytest with Chromium" env PYTHONPATH=$(CURDIR)/$(BROWSER) SCREENSHOTS=build/screenshots $(PY) -m pytest tests/python/browser

# Pyright gets its own program from npm when it is run first.
$(PYRIGHT)/.installed: python/requirements-types.lock $(VENV)/.installed
	@$(STEP) "installing Pyright" $(PY) -m pip install --quiet --no-deps --upgrade --target $(PYRIGHT) --requirement $<
	@touch $@

.PHONY: test-types
test-types: setup $(PYRIGHT)/.installed ## what mypy and Pyright say of programs that are right, and of wrong ones
	@$(STEP) "pytest with Pyright" env PYTHONPATH=$(CURDIR)/$(PYRIGHT) $(PY) -m pytest tests/python/test_types.py

## Documentation

$(DOCS)/.created: | prerequisites
	@$(STEP) "creating $(DOCS)" $(PYTHON) -m venv --clear $(DOCS)
	@touch $@

$(DOCS)/.installed: python/requirements-docs.lock $(DOCS)/.created
	@$(STEP) "installing MkDocs" $(DOCS)/bin/python -m pip install --quiet --no-deps --requirement $<
	@touch $@

.PHONY: docs
docs: $(DOCS)/.installed ## a site of docs with the Python API, in build/site; a link that leads nowhere is an error
	@$(STEP) "mkdocs" env NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict

## Packages

.PHONY: wheels
wheels: setup ## build a wheel for each CPython >= 3.11 on this machine, into dist
	@$(PY) python/build_backend/wheels.py

# All of Go but what is behind the C of the binding; macOS' own C compiler builds that there.
.PHONY: build-elsewhere
build-elsewhere: prerequisites ## compile the Go packages and their tests for linux/arm64 and darwin/arm64
	@for system in linux darwin; do \
		$(STEP) "go vet, $$system/arm64" env GOOS=$$system GOARCH=arm64 CGO_ENABLED=0 \
			sh -c 'go vet $$(go list ./... | grep -v /pybind)' || exit 1; \
	done

## Upkeep

.PHONY: fmt
fmt: setup ## format Go and Python
	gofmt -w $(GO_DIRS)
	$(VENV)/bin/ruff check --fix $(PY_PATHS)
	$(VENV)/bin/ruff format $(PY_PATHS)

.PHONY: stubs
stubs: setup ## write the stubs by which type checkers know the names of torchemu
	@$(PY) -W ignore python/build_backend/stubs.py

.PHONY: reference
reference: setup ## write the pages of docs/reference, and the table of what runs, from parsers and tests
	@$(PY) docs/reference/make.py
	@$(PY) docs/compatibility.py

.PHONY: pictures
pictures: torch $(BROWSER)/.installed ## make the pictures of docs anew (needs Chromium)
	@$(STEP) "installing matplotlib" $(PY) -m pip install --quiet --upgrade --target $(BROWSER) 'matplotlib>=3.8'
	@$(STEP) "pictures" env PYTHONPATH=$(CURDIR)/$(BROWSER) $(PY) docs/pictures/make.py

.PHONY: clean
clean: ## remove .venv and everything built
	rm -rf $(VENV) $(TORCH_VENV) $(NEWEST_VENV) build dist python/torchemu/_core .pytest_cache .ruff_cache .mypy_cache
	find $(PY_PATHS) -name __pycache__ -type d -prune -exec rm -rf {} +
