# `make help` lists what there is to do. Everything is installed below this folder; Go and npm keep their caches.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
HNSWLIB := $(VENV)/.hnswlib
# The compiler of the protos has no wheels for Python 3.14.
PROTOC_PYTHON ?= $(PYTHON)
PROTOC_VENV := .venv-protos
PROTOC_INSTALLED := $(PROTOC_VENV)/.installed
SUPPLY_VENV := .venv-supply
SUPPLY_INSTALLED := $(SUPPLY_VENV)/.installed
CONFORMANCE_VENV := .venv-conformance
CONFORMANCE_INSTALLED := $(CONFORMANCE_VENV)/.installed
INSTALL := -m pip install --quiet --disable-pip-version-check
INSTALL_LOCKED := $(INSTALL) --require-hashes
PRODUCTS := memory_service/indexes/hnswlib_products.hpp
BUILD_LOCK := locks/build.lock
CONFORMANCE_LOCK := locks/conformance.lock
DEV_LOCK := locks/dev.lock
PROTOC_LOCK := locks/protos.lock
SERVER_LOCK := locks/server.lock
SUPPLY_LOCK := locks/supply.lock
RESOLVE = $(SUPPLY_VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --no-emit-package memory-client \
	$(if $(UPGRADE),--upgrade)
LOCK = $(RESOLVE) --generate-hashes --custom-compile-command "make lock"
GO_TOOLS := build/bin/.installed
NODE_MODULES := clients/typescript/node_modules/.installed
NODE_FRAMEWORKS := clients/typescript/conformance/node_modules/.installed
GENERATE_WITH = $(CURDIR)/$(PROTOC_VENV)/bin/python \
	"$$(command -v go >/dev/null && echo $(CURDIR)/build/bin)" \
	"$$(command -v npm >/dev/null && echo $(CURDIR)/clients/typescript/node_modules/.bin/protoc-gen-es)"
RELEASED_PROTOS := protos/released.binpb
SOURCES := memory_service clients/python tests benchmarks setup.py
TEST_WORKERS ?= 2
# All of tests/faults and tests/contract, and what else asks how much it is to do.
SOAKED = $(shell grep -l "^from faults.scale import" tests/test_*.py)

.DEFAULT_GOAL := help
.PHONY: help install serve test conformance coverage soak bench check protos protos-check fmt lint types lock sbom audit-dependencies \
	tools clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Create .venv with the server, the client and the command memory-service

# Nothing is fetched that a lock does not name: hnswlib, which has no wheels, and the packages of this repository, which
# cannot have a hash, are built with what is installed first.
$(INSTALLED): $(HNSWLIB) $(DEV_LOCK) pyproject.toml setup.py clients/python/pyproject.toml $(wildcard memory_service/*/*.pyx memory_service/*.hpp memory_service/*/*.hpp)
	@# apsw-sqlite3mc brings the module of this package, which an older .venv may have.
	$(BIN)/python -m pip uninstall --quiet --quiet --yes apsw
	PYTHONWARNINGS=ignore $(BIN)/python $(INSTALL_LOCKED) --no-build-isolation -r $(DEV_LOCK)
	PYTHONWARNINGS=ignore $(BIN)/python $(INSTALL) --no-deps --no-build-isolation -e clients/python -e .
	@$(BIN)/python -m pip check
	@touch $@

# By itself hnswlib is compiled for this processor alone, and pip takes what was built so from its cache, or leaves what
# an older .venv has.
$(HNSWLIB): $(BUILD_LOCK) $(DEV_LOCK) $(PRODUCTS) memory_service/indexes/inner_product.hpp
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed")'
	@command -v c++ >/dev/null || { echo "a C++ compiler is needed (hnswlib has no wheels)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL_LOCKED) -r $(BUILD_LOCK)
	awk '/^[^ #]/ { ours = /^hnswlib==/ } ours' $(DEV_LOCK) | \
		HNSWLIB_NO_NATIVE=1 CXXFLAGS="$$CXXFLAGS -Ihnswlib -include $(CURDIR)/$(PRODUCTS)" $(BIN)/python $(INSTALL_LOCKED) \
		--no-build-isolation --no-deps --no-cache-dir --force-reinstall -r /dev/stdin
	@touch $@

serve: $(INSTALLED) ## Start the server on 127.0.0.1:50051, with its data in ./data
	@$(BIN)/memory-service serve --log-level warning

test: $(INSTALLED) $(GO_TOOLS) $(NODE_MODULES) ## Run every test that this machine's toolchains allow; say what was left out
	@# Hundreds of servers are started: none should compile the code anew. A test that hangs where no signal reaches it
	@# ends its worker, with the place printed.
	@$(BIN)/python -m compileall -q memory_service clients/python/memory_client
	PATH="$(CURDIR)/build/bin:$$PATH" $(BIN)/python -m pytest -q \
		-o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true --max-worker-restart 2 \
		--numprocesses $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

# The frameworks cannot all be installed beside the server; the tests start it from .venv.
conformance: $(INSTALLED) $(CONFORMANCE_INSTALLED) $(NODE_MODULES) $(NODE_FRAMEWORKS) ## Run the tests of agent frameworks over their adapters; see docs/integrations.md
	SERVER_PYTHON=$(CURDIR)/$(BIN)/python $(CONFORMANCE_VENV)/bin/python -m pytest -q $(or $(ARGS),tests/conformance)

$(CONFORMANCE_INSTALLED): $(BUILD_LOCK) $(CONFORMANCE_LOCK) clients/python/pyproject.toml
	$(PYTHON) -m venv $(CONFORMANCE_VENV)
	$(CONFORMANCE_VENV)/bin/python $(INSTALL_LOCKED) -r $(BUILD_LOCK)
	PYTHONWARNINGS=ignore $(CONFORMANCE_VENV)/bin/python $(INSTALL_LOCKED) --no-build-isolation -r $(CONFORMANCE_LOCK)
	PYTHONWARNINGS=ignore $(CONFORMANCE_VENV)/bin/python $(INSTALL) --no-deps --no-build-isolation -e clients/python
	@touch $@

soak: $(INSTALLED) ## Run the tests that do more in it at full length (over an hour); SEED=n repeats a run
	@$(BIN)/python -m compileall -q memory_service clients/python/memory_client
	SOAK=1 $(BIN)/python -m pytest tests/faults tests/contract $(SOAKED) --numprocesses $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

# Slower than the tests alone, so some that measure time may fail: the report is written all the same.
coverage: $(INSTALLED) $(GO_TOOLS) $(NODE_MODULES) ## Run the tests, and write what they reach to build/coverage/index.html
	rm -rf build/coverage && mkdir -p build/coverage
	PATH="$(CURDIR)/build/bin:$$PATH" $(BIN)/coverage run -m pytest -q \
		--numprocesses $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS); status=$$?; \
		$(BIN)/coverage combine --quiet && $(BIN)/coverage html --quiet && $(BIN)/coverage report --format total && exit $$status

# Generators, a linter and the real grpcurl. Without Go, what needs them is left out.
$(GO_TOOLS): clients/go/tools/go.mod
	@if command -v go >/dev/null; then \
		mkdir -p build/bin && cd clients/go/tools && GOBIN="$(CURDIR)/build/bin" go install tool && touch "$(CURDIR)/$@"; \
	elif [ "$$CI" = true ]; then \
		echo "Go is needed"; exit 1; \
	else \
		echo "no Go: the Go clients, their generated code and the tests that need grpcurl are left out"; \
	fi

tools: $(GO_TOOLS) ## Build grpcurl, the Go generators and the Go linter into build/bin

$(NODE_MODULES) $(NODE_FRAMEWORKS): %/node_modules/.installed: %/package.json %/package-lock.json
	@if command -v npm >/dev/null; then \
		cd $* && npm ci --no-audit --no-fund --loglevel=error && touch "$(CURDIR)/$@"; \
	elif [ "$$CI" = true ]; then \
		echo "Node.js with npm is needed"; exit 1; \
	else \
		echo "no Node.js: the TypeScript client and its generated code are left out"; \
	fi

bench: $(INSTALLED) ## Run the benchmarks; LOCOMO_DATA=path adds the conversations
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks --json build/bench.json

# Tools and checks run side by side, tests after them: some measure time.
check: ## What CI runs
	$(MAKE) --jobs --output-sync=target $(INSTALLED) $(PROTOC_INSTALLED) $(CONFORMANCE_INSTALLED) $(GO_TOOLS) $(NODE_MODULES) $(NODE_FRAMEWORKS)
	$(MAKE) --jobs --output-sync=target protos-check lint types
	$(MAKE) test
	$(MAKE) conformance

protos: $(PROTOC_INSTALLED) $(GO_TOOLS) $(NODE_MODULES) ## Generate code from the protos
	protos/generate.sh $(GENERATE_WITH)

$(PROTOC_INSTALLED): $(PROTOC_LOCK)
	$(PROTOC_PYTHON) -m venv $(PROTOC_VENV)
	$(PROTOC_VENV)/bin/python $(INSTALL_LOCKED) -r $(PROTOC_LOCK)
	@touch $@

protos-check: $(INSTALLED) $(PROTOC_INSTALLED) $(GO_TOOLS) $(NODE_MODULES) ## Lint the protos, look for breaking changes, demand up-to-date generated code
	$(BIN)/buf lint protos
	$(BIN)/buf breaking protos --against $(RELEASED_PROTOS)
	protos/check-generated.sh $(GENERATE_WITH)

fmt: $(INSTALLED) ## Format the code, and write the synchronous Python client from the asynchronous one
	$(BIN)/python clients/python/generate_sync.py
	$(BIN)/ruff format --quiet $(SOURCES)
	$(BIN)/ruff check --quiet --fix $(SOURCES)
	@if command -v gofmt >/dev/null; then gofmt -w clients/go; else echo "no Go: the Go clients are left out"; fi

lint: $(INSTALLED) ## Lint the code, the direction of its imports, and the wording of texts
	$(BIN)/ruff format --quiet --check $(SOURCES) || { echo "run: make fmt"; exit 1; }
	$(BIN)/ruff check $(SOURCES)
	@if command -v gofmt >/dev/null; then \
		files="$$(gofmt -l clients/go)" || exit 1; \
		[ -z "$$files" ] || { echo "not formatted by gofmt:" $$files; echo "run: make fmt"; exit 1; }; \
	else \
		echo "no Go: the Go clients are left out"; \
	fi
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tests/wording.py

types: $(INSTALLED) ## Check the types
	$(BIN)/mypy

# All in one set of versions: what is locked for a server is what is tested. Those that are locked stay, without UPGRADE.
# The compiler of the protos has an environment of its own, with older versions; the frameworks exclude each other's.
lock: $(SUPPLY_INSTALLED) ## Write locks/ anew from pyproject.toml; UPGRADE=1 takes newer versions
	mkdir -p build
	cat $(BUILD_LOCK) $(DEV_LOCK) $(SUPPLY_LOCK) > build/constraints.txt
	$(RESOLVE) pyproject.toml --all-extras --group build --group dev --group supply --output-file build/constraints.txt
	$(LOCK) --group build --constraint build/constraints.txt --output-file $(BUILD_LOCK)
	$(LOCK) pyproject.toml --extra postgres --constraint build/constraints.txt --output-file $(SERVER_LOCK)
	$(LOCK) pyproject.toml --all-extras --constraint build/constraints.txt --output-file locks/reranker.lock
	$(LOCK) pyproject.toml --all-extras --group dev --constraint build/constraints.txt --output-file $(DEV_LOCK)
	$(LOCK) --group supply --constraint build/constraints.txt --output-file $(SUPPLY_LOCK)
	$(LOCK) --group protos --output-file $(PROTOC_LOCK)
	$(LOCK) --group conformance --fork-strategy fewest --output-file $(CONFORMANCE_LOCK)

sbom: $(SUPPLY_INSTALLED) ## Write build/sbom.cdx.json: what locks/server.lock names, as CycloneDX
	mkdir -p build
	PYTHONWARNINGS=ignore $(SUPPLY_VENV)/bin/cyclonedx-py requirements $(SERVER_LOCK) --pyproject pyproject.toml \
		--output-reproducible --output-file build/sbom.cdx.json

audit-dependencies: $(SUPPLY_INSTALLED) ## Ask for known vulnerabilities of what locks/server.lock names; needs a network
	@.ci/audit-dependencies $(SUPPLY_VENV)/bin/pip-audit $(SERVER_LOCK)

$(SUPPLY_INSTALLED): $(SUPPLY_LOCK)
	$(PYTHON) -m venv $(SUPPLY_VENV)
	$(SUPPLY_VENV)/bin/python $(INSTALL_LOCKED) -r $(SUPPLY_LOCK)
	@touch $@

clean: ## Remove what was installed and built; data stays
	rm -rf $(VENV) $(PROTOC_VENV) $(SUPPLY_VENV) $(CONFORMANCE_VENV) build clients/typescript/node_modules clients/typescript/dist clients/typescript/build \
		clients/typescript/conformance/node_modules clients/typescript/conformance/build memory_service/*/*.so memory_service/*/*.cpp
