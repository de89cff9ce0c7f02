#!/usr/bin/env bash
# Builds and runs the tests that are meaningful under sanitizers; see `make sanitize`. Without arguments memory and threads:
#   memory   address and undefined-behaviour sanitizers: the runtime, the compiler and its textual tests
#   threads  the thread sanitizer: ranks as threads, streams, the pool of threads
#   fast     under the sanitizers of memory, the tests of `make check-fast`; see `make check-sanitized`
#   runtime  of these, the tests that read files and run plans; see .ci/run
# Fails when a test does, and when any process had a report.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Not under the address sanitizer: tests that take minutes in a release build already, or that measure (scale, precision,
# recompute, packing, determinism, oracle, write-a-pass, the codegen tests, whose kernels are not instrumented), and
# tests that replace the allocator.
memory_tests=(
  base-test base-file-test safetensors-test plan-test kernels-test
  hal-test loopback-test gloo-test gloo-processes-test comm-control-test
  session-test session-fault-test session-overlap-loopback-test session-overlap-gloo-test
  train-data-test checkpoint-test bowline-data-test train-test parallel-save-test bowline-run-test
  check-test check-mutation-test check-meaning-test check-tools-test check-ranks-test check-rank-mutation-test
  factor-rule-test strategy-test sharding-test local-pipeline-test stages-test schedules-test
  pass-algorithms-test equivalence-test gradient-test interpreter-test random-program-test
  hf-config-test hf-weights-test hf-import-test
  parallel-training-test checkpoint-strategy-test
  lit bad-input translate-roundtrip
)
memory_tools=(bowline-opt bowline-compile bowline-check bowline-inspect bowline-translate bowline-run)
runtime_tests=(
  base-test safetensors-test plan-test kernels-fast-test hal-test loopback-test comm-control-test
  session-test session-fault-test session-overlap-loopback-test train-test
  check-test check-meaning-test check-ranks-test check-rank-mutation-test hf-config-test hf-weights-test hf-import-test
)
# MLIR itself has no threads in our tools, and is not instrumented: its locks would be unknown.
thread_tests=(
  kernels-test hal-test loopback-test gloo-test comm-control-test
  session-test session-fault-test session-overlap-loopback-test session-overlap-gloo-test
  train-test parallel-save-test check-ranks-test check-rank-mutation-test
)

# Reports go into files: a test that expects a tool to fail would take one for the failure that it expects.
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
# LLVM and MLIR are not instrumented: memory that LLVM allocates and poisons by itself, or puts into containers that our
# code reads, is no error.
export ASAN_OPTIONS=allow_user_poisoning=0:detect_container_overflow=0:log_path=$reports/report
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:log_path=$reports/report
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:log_path=$reports/report

# A sanitizer that reports nothing looks as if there was nothing: each must find the error of a small program.
expect_report() {
  local sanitizers=$1 report=$2 body=$3
  printf '#include <thread>\nint number = 1;\nint main(int count, char **) { %s }\n' "$body" > "$reports/wrong.cc"
  clang++-22 -O1 -g1 -fsanitize="$sanitizers" -o "$reports/wrong" "$reports/wrong.cc"
  if "$reports/wrong" || ! grep -q "$report" "$reports"/report.*; then
    echo "sanitize: -fsanitize=$sanitizers did not report '$report', so its silence would say nothing" >&2
    exit 1
  fi
  rm "$reports"/*
}

# run_part PRESET TESTS... -- TOOLS...
run_part() {
  local preset=$1 tests=() targets=()
  shift
  while [ "$1" != -- ]; do tests+=("$1"); shift; done
  shift
  for test in "${tests[@]}"; do
    case $test in
      lit|bad-input|translate-roundtrip) ;;
      kernels-fast-test) targets+=(kernels-test) ;;
      *) targets+=("$test") ;;
    esac
  done
  cmake --preset "$preset"
  cmake --build --preset "$preset" --target "${targets[@]}" "$@"
  local names
  names=$(IFS='|'; echo "${tests[*]}")
  # All of them, or a name is wrong.
  local found
  found=$(ctest --test-dir "build/$preset" -N -R "^($names)\$" | sed -n 's/^Total Tests: //p')
  if [ "$found" != "${#tests[@]}" ]; then
    echo "sanitize: $preset has $found of the ${#tests[@]} tests that are to run" >&2
    exit 1
  fi
  run_tests "$preset" -R "^($names)\$"
}

# run_tests PRESET WHICH...: those that these options of ctest select; fails when one does, or a process had a report.
run_tests() {
  local preset=$1 status=0
  shift
  GTEST_FILTER=$gtest_filter ctest --test-dir "build/$preset" "$@" --output-on-failure --no-tests=error --timeout 3600 ||
    status=$?
  if compgen -G "$reports/report.*" > /dev/null; then
    cat "$reports"/report.* >&2
    echo "sanitize: $(compgen -G "$reports/report.*" | wc -l) processes had a report" >&2
    status=1
  fi
  return "$status"
}

expect_reports_of_memory() {
  expect_report address,undefined heap-use-after-free 'int *p = new int(count); delete p; return *p;'
  expect_report address,undefined 'signed integer overflow' 'return 0x7fffffff + count > 0 ? 0 : 1;'
}

memory() {
  expect_reports_of_memory
  # One family has all schedules and divisions, and every case takes some seconds. Death tests crash on purpose.
  gtest_filter='-*DeathTest*:*ParallelTraining*qwen2*:*ParallelTraining*gpt2*:*ParallelTraining*pp8*:CheckpointStrategy*gpt2*' \
    run_part asan "${memory_tests[@]}" -- "${memory_tools[@]}"
}

runtime() {
  expect_reports_of_memory
  gtest_filter='-*DeathTest*' run_part asan "${runtime_tests[@]}" --
}

fast() {
  expect_reports_of_memory
  cmake --preset asan
  cmake --build --preset asan --target fast-tests
  gtest_filter='-*DeathTest*' run_tests asan -L '^fast$' -j "$(nproc)"
}

threads() {
  expect_report thread 'data race' 'std::thread other([] { ++number; }); ++number; other.join(); return 0;'
  # RankScale says how long something takes.
  gtest_filter='-*DeathTest*:RankScale*' run_part tsan "${thread_tests[@]}" --
}

for part in "${@:-memory threads}"; do
  for one in $part; do
    case $one in
      memory|fast|runtime|threads) "$one" ;;
      *) echo "sanitize: there is no part '$one'; the parts are memory, fast, runtime and threads" >&2; exit 1 ;;
    esac
  done
done
