# Everything a person or CI does with a checkout; `make` alone lists it. Options of a target are
# variables: make run MODEL=file.gguf PROMPT="..."
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
MODEL ?=
PROMPT ?= Explain in three sentences why the sky is blue.
FUZZ_SECONDS ?= 5
FUZZ_TARGET ?=
BENCH_FILTER ?= .
BENCH_SECONDS ?= 0.05

configure = cmake --preset $(1)
build = $(call configure,$(1)) && cmake --build --preset $(1) -j $(JOBS)
ctest = ctest --preset $(1) -j $(JOBS)

.NOTPARALLEL:
.SILENT: run build deps
.PHONY: help run build test unit asan tsan fuzz arm bench tidy models deps dev-deps clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

run: deps build ## install, build, fetch the default model once, answer PROMPT (or use MODEL)
	model="$(MODEL)"; \
	if [ -z "$$model" ]; then model="$$(python3 tools/fetch_model.py smollm2)"; fi; \
	build/strata run "$$model" "$$PROMPT"
run: export PROMPT := $(PROMPT)

build: ## build/strata and build/strata-synthetic, optimized
	$(call configure,release) > build.log 2>&1 || { cat build.log >&2; exit 1; }
	rm -f build.log
	cmake --build --preset release -j $(JOBS) --target strata strata-synthetic

test: dev-deps models arm asan fuzz unit ## everything that needs no GPU

unit: ## the unit tests and the checks of style, layers and documents
	$(call build,release)
	$(call ctest,release)

asan: ## the unit tests under AddressSanitizer and UBSan
	$(call build,asan)
	$(call ctest,asan)

tsan: ## the unit tests under ThreadSanitizer
	$(call build,tsan)
	$(call ctest,tsan)

arm: ## the tests of the folders that compute, built for AArch64 and run by QEMU
	$(call build,arm)
	$(call ctest,arm)

fuzz: ## every fuzz target (or FUZZ_TARGET) for FUZZ_SECONDS from its seeds
	$(call configure,asan)
	cmake --build --preset asan -j $(JOBS) --target fuzz/all
	tools/fuzz.sh build-asan $(FUZZ_SECONDS) $(FUZZ_TARGET)

bench: ## microbenchmarks, or those that match BENCH_FILTER, each for BENCH_SECONDS
	tools/install_deps.sh build bench
	$(call build,bench)
	@shopt -s nullglob; programs=(build-bench/*_bench); \
	[ $${#programs[@]} -gt 0 ] || { echo "make bench: there are no benchmarks" >&2; exit 1; }; \
	for program in "$${programs[@]}"; do \
	  "$$program" --benchmark_filter='$(BENCH_FILTER)' --benchmark_min_time=$(BENCH_SECONDS) \
	    --benchmark_counters_tabular=true; \
	done

tidy: ## clang-format and clang-tidy over every source
	$(call configure,release)
	python3 tests/tidy.py
	tools/clang_checks.sh format
	tools/clang_checks.sh tidy build $(JOBS)

models: ## fetch the models that the tests use, once
	python3 tools/fetch_model.py smollm2 gemma3

deps: ## install what building needs
	tools/install_deps.sh build

dev-deps: ## install what the tests need besides
	tools/install_deps.sh build test
	python3 tools/client_packages.py > /dev/null || echo "The tests of these clients are skipped." >&2

clean: ## remove the build folders
	rm -rf build build-asan build-tsan build-arm build-bench
