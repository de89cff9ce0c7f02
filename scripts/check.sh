#!/usr/bin/env bash
# Builds and runs every test; see `make check`. The last line on stdout is "N passed, N failed", over GoogleTest cases,
# lit files, scripts and the steps below. The exit status is 0 only when nothing failed.
#
#   scripts/check.sh [--step NAME=passed|failed]...
#
# --step  counts something that ran before, as .ci/run does
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build/release
results=$build/test-results

# A failed build leaves nothing to count but itself.
configure_and_build() {
  cmake --preset release && cmake --build --preset release
}
if ! configure_and_build; then
  echo "0 passed, 1 failed"
  exit 1
fi

rm -rf "$results"
mkdir -p "$results/gtest"
# Absolute, because each test runs in a folder of its own.
export GTEST_OUTPUT="xml:$PWD/$results/gtest/"
export LIT_OPTS="--xunit-xml-output=$PWD/$results/lit.xml"
ctest --test-dir "$build" --output-on-failure --no-tests=error --output-junit "$PWD/$results/ctest.xml" || true
unset GTEST_OUTPUT LIT_OPTS

runtime_only=passed
scripts/check-runtime-only.sh || runtime_only=failed
package=passed
scripts/check-package.sh || package=failed

scripts/summarize-tests.py "$results" --step "runtime-only=$runtime_only" --step "package=$package" "$@"
