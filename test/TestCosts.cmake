# Seconds of the longest tests, two at a time on a Zen 4 with 2 processors (2026-11-27): ctest starts those first, so that a
# fresh build folder, which has no times of its own yet, does not end with one of them. A test that is not here is short.
set(BOWLINE_TEST_COSTS
  cuda-stand-in-plans 102 cuda-plans 93 kernels-test 87 processes 122 run-card 74 doc-examples 66
  parallel-training-test 65 nccl-plans 65 baselines 61 recompute 55 compile-flags 42 random-strategies 38 packing 33
  lit 32 checkpoint-strategy-test 32 translate-roundtrip 30 serve-plan-test 30 resume 28 bad-input 25
  codegen-transpose-test 25 compiled-model-test 25 data 24 strategy-file 23 codegen-ops-test 22 cudnn-graphs-test 22
  memory 25 placement-test 16 determinism 22 equivalence-test 21 precision 20 advice-test 19 week 19 codegen-columns-test 17
  deleted-waits 16 gloo-processes-test 15 target-levels 15 gguf 15 scale 14 arena 14 serve-model 14 serve-ranks 18
  cuda-stand-in-kernels-test 14 sharding-test 13 spawn-test 13 week-faults 22 reported-bugs 12 attacks 12 ir-edits 10)

# bowline_set_test_cost(name): to be called where the test is added, for ctest knows it there alone.
function(bowline_set_test_cost name)
  list(FIND BOWLINE_TEST_COSTS ${name} at)
  if(at GREATER_EQUAL 0)
    math(EXPR at "${at} + 1")
    list(GET BOWLINE_TEST_COSTS ${at} seconds)
    set_property(TEST ${name} PROPERTY COST ${seconds})
  endif()
endfunction()
