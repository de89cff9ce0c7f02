#!/usr/bin/env bash
# Builds and runs every test; see `make check`. The last line on stdout is "N passed, N failed, N skipped", over
# GoogleTest cases, cases of test/Execution, lit files, scripts and the steps below. The exit status is 0 only when
# nothing failed.
#
#   scripts/check.sh [--nightly] [--step NAME=passed|failed|skipped]...
#
# --nightly  makes random choices that no run had before, tries COUNT (200) more random strategies, deletes each wait of 20
#            plans in turn, goes through all cases of sweeps of which `make check` takes some, and runs the tests of
#            whole runs on the driver discrete too. The seed is printed first and last; SEED=N repeats it
# --step     counts something that ran before, as .ci/run does
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

nightly=false
if [ "${1-}" = --nightly ]; then
  nightly=true
  shift
fi

build=build/release
results=$build/test-results

# A failed build leaves nothing to count but itself.
configure_and_build() {
  cmake --preset release && cmake --build --preset release
}
if ! configure_and_build; then
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi

rm -rf "$results"
mkdir -p "$results/gtest" "$results/unittest"
steps=()
# run_step NAME COMMAND...: counts as one case.
run_step() {
  local name=$1
  shift
  if "$@"; then steps+=(--step "$name=passed"); else steps+=(--step "$name=failed"); fi
}

seed_note=
if $nightly; then
  BOWLINE_TEST_SEED=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
  export BOWLINE_TEST_SEED BOWLINE_NIGHTLY=1
  seed_note="the seed of all random choices is $BOWLINE_TEST_SEED; make check-nightly SEED=$BOWLINE_TEST_SEED repeats it"
  echo "$seed_note"
fi

# Where Python tests find the kernels that others of this run compiled.
export BOWLINE_TEST_KERNEL_CACHE="$PWD/$build/test-kernels"
rm -rf "$BOWLINE_TEST_KERNEL_CACHE"

# Absolute, because each test runs in a folder of its own. Two at a time, since many have several threads or processes
# themselves. kernels-test has the cases of kernels-fast-test.
BOWLINE_UNITTEST_FOLDER="$PWD/$results/unittest" \
  LIT_OPTS="--xunit-xml-output=$PWD/$results/lit.xml" \
  ctest --test-dir "$build" -j 2 --output-on-failure --no-tests=error --output-junit "$PWD/$results/ctest.xml" \
  --exclude-regex '^kernels-fast-test$' || true
# A second run of a test, below, records its cases under the same name.
rm -rf "$results-counted"
mv "$results" "$results-counted"

run_step runtime-only scripts/check-runtime-only.sh
run_step package scripts/check-package.sh
if $nightly; then
  run_step "${COUNT:-200} random strategies" \
    "$build/test/bin/random-strategies" --count "${COUNT:-200}" --seed "$BOWLINE_TEST_SEED" \
    --also-on discrete --driver-seed "$BOWLINE_TEST_SEED"
  run_step "every wait of 20 plans" "$build/test/bin/deleted-waits"
  run_step "changes of 9 plans" "$build/test/bin/plan-mutations" --count 1000
  # All that run plans, but those of memory and of errors of the cpu driver, and those that name their drivers.
  whole_runs='^(oracle|determinism|baselines|resume|recompute|packing|precision|processes'
  whole_runs+='|compiled-model-test|op-agreement-test|train-agreement-test|parallel-training-test'
  whole_runs+='|checkpoint-strategy-test)$'
  BOWLINE_TEST_DRIVER=discrete:seed=$BOWLINE_TEST_SEED \
    run_step "whole runs on the driver discrete" ctest --test-dir "$build" -R "$whole_runs" --output-on-failure --timeout 3600
  # Its load was among the tests above.
  run_step "serving under overload" scripts/check-serve.py --only overload
  run_step "sanitized fast tests" make --no-print-directory check-sanitized
fi

[ -z "$seed_note" ] || echo "$seed_note"
[ -e "$build/bin/libbowline_cuda.so" ] ||
  echo "the CUDA part was left out: there is no toolkit of CUDA 13 (CUDA_HOME says where one is; docs/gpu.md)"
scripts/summarize-tests.py "$results-counted" "${steps[@]}" "$@"
