# The commands of everyday work. Everything else is CMake: `cmake --preset dev && cmake --build --preset dev`.

# Build folders share compiled objects: ccache sees paths relative to the checkout, wherever that lies.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
# Ninja prints the numbers of finished and of all steps, and the elapsed time.
export NINJA_STATUS := [%f/%t, %e s] 

.PHONY: help packages configure build demo serve-demo check check-fast check-mutants check-nightly check-serve check-slurm check-sanitized sanitize baselines bench bench-overlap bench-peers bench-precision bench-scale bench-serve-peers bench-threads fuzz docs package gpu-bundle format format-check tidy hooks clean

help:  ## List the targets (the default)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

packages:
	@scripts/install-packages.sh

configure: packages
	@cmake --preset release

build: configure  ## Install missing packages and build everything; the tools are in build/release/bin
	@cmake --build --preset release

demo: configure  ## Train a small Llama on English text, draw its loss, let it write (a minute and a half of training)
	@scripts/demo.sh

serve-demo: configure  ## Fetch a small chat model (98 MB), serve it by OpenAI's API, and talk with it in the terminal
	@scripts/install-packages.sh --list scripts/serve-demo-packages.txt
	@cmake --build --preset release --target bowline-compile bowline-check bowline-serve
	@scripts/serve-demo.py

check: packages  ## Build and run every test; the last line is "N passed, N failed, N skipped"
	@scripts/check.sh $(STEPS)

check-fast: configure  ## Build and run the fast tests: two minutes after a build
	@cmake --build --preset release --target fast-tests
	@ctest --test-dir build/release -L '^fast$$' -j 2 --output-on-failure --no-tests=error

check-mutants: configure  ## Make each of the recorded mistakes, and say which of them the fast tests find (an hour)
	@scripts/check-mutants.py $(NAMES)

check-nightly: packages  ## All tests with a seed that no run had before (SEED=N repeats one), 200 (COUNT=N) random strategies, each wait of 20 plans deleted, and whole runs on the driver discrete
	@SEED=$(SEED) COUNT=$(COUNT) scripts/check.sh --nightly

check-serve: configure  ## Test the server with clients of other projects, and under five times the load that it can take (minutes; installs Chromium, and the rest into build/check-serve)
	@scripts/install-packages.sh --list scripts/check-serve-packages.txt
	@cmake --build --preset release --target bowline-compile bowline-run bowline-serve
	@scripts/check-serve.py $(if $(ONLY),--only $(ONLY))

check-slurm: build  ## Run a plan under a Slurm of this host alone, installed and started for it; needs root
	@scripts/install-packages.sh --list scripts/slurm-packages.txt
	@scripts/check-slurm.py

baselines: configure  ## Record the plans of the test models and their results again, after a change that is meant to change them
	@cmake --build --preset release --target bowline-compile bowline-inspect bowline-run bowline-translate
	@PYTHONDONTWRITEBYTECODE=1 test/Execution/baselines.py --tools build/release/bin $(NAMES)

sanitize: packages  ## Run tests under the address and undefined-behaviour sanitizers, then under that for threads (hours)
	@scripts/sanitize.sh

check-sanitized: packages  ## Run the fast tests under the address and undefined-behaviour sanitizers, and each fuzz target for ten seconds
	@scripts/sanitize.sh fast
	@$(MAKE) --no-print-directory fuzz SECONDS=10

bench: packages  ## Measure compile time and training beside a baseline and the machine's bounds, then each kernel
	@scripts/install-packages.sh --list scripts/bench-packages.txt
	@cmake --preset release
	@cmake --build --preset release
	@scripts/bench.py
	@build/release/bin/bowline-kernel-bench
	@build/release/bin/bowline-codegen-bench

bench-peers: build  ## Measure training beside PyTorch and JAX, installed into build/peers (6 GiB; over an hour)
	@scripts/bench-peers.py

bench-overlap: build  ## Measure how much of the gradients' reduction and of a pipeline's transfers is hidden on a slow link
	@scripts/bench-overlap.py

bench-precision: build  ## Train the demo for 500 steps in f32, twice, and in bf16, from two seeds, and compare (half an hour)
	@scripts/bench-precision.py

bench-scale: build  ## Measure compiling and checking plans of GPT-3 175B for up to 12288 ranks (a minute)
	@scripts/bench-scale.py

bench-serve-peers: configure  ## Measure serving beside llama.cpp, ik_llama.cpp, OpenVINO GenAI and vLLM, installed into build/serve-peers (an hour; QUICK=1: 5 minutes)
	@scripts/install-packages.sh --list scripts/serve-demo-packages.txt
	@cmake --build --preset release --target bowline-compile bowline-serve
	@scripts/bench-serve-peers.py $(if $(QUICK),--quick)

bench-threads: build  ## Measure training on all processors and on one, beside 0, 1 and 2 busy loops, from flat and sharp weights (over five minutes)
	@scripts/bench-threads.py

fuzz: packages  ## Run each fuzz target for a minute, or for SECONDS=N
	@cmake --preset asan -DBOWLINE_FUZZ_SECONDS=$(or $(SECONDS),60)
	@cmake --build --preset asan --target fuzz

docs: build  ## Generate the reference pages into build/release/docs/reference
	@scripts/make-reference.py --build-dir build/release

package: packages  ## Make a tarball of the runtime's tools that runs from any folder, build/bowline-VERSION-SYSTEM.tar.gz
	@cmake --preset runtime-only
	@cmake --build --preset runtime-only
	@cd build && cpack --config runtime-only/CPackConfig.cmake -B $(CURDIR)/build/package
	@mv build/package/bowline-*.tar.gz build/

gpu-bundle: configure  ## Make the folder build/gpu-bundle, whose run-card is for a machine with an NVIDIA card
	@cmake --build --preset release --target bowline-compile bowline-run bowline-inspect bowline-card-bench bowline_driver_cuda bowline_driver_discrete hal-test cuda-card-test recording-test session-overlap-loopback-test session-fault-test
	@scripts/make-gpu-bundle.sh build/release

format: packages  ## Format C++ sources in place
	@scripts/format.sh

format-check: packages  ## Say which C++ sources are not formatted
	@scripts/format.sh --check

tidy: build  ## Run clang-tidy for ten minutes on the lines that changed since BASE=COMMIT (main), naming files that the time left out
	@scripts/tidy.py --base $(or $(BASE),main)

hooks:  ## Let git format the commits from this checkout, and refuse subjects of another form
	@git config core.hooksPath .githooks

clean:  ## Remove the outputs of builds and of the demo
	rm -rf build demo
