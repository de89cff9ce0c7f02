# Seconds of the longest tests, two at a time on a Zen 4 with 2 processors (2026-11-26): ctest starts those first, so that a
# fresh build folder, which has no times of its own yet, does not end with one of them. A test that is not here is short.
set(BOWLINE_TEST_COSTS
  recompute 200 parallel-training-test 190 run-card 180 codegen-columns-test 145 kernels-test 130 cuda-stand-in-plans 120
  processes 100 codegen-transpose-test 90 random-strategies 90 cuda-plans 90 compile-flags 75 nccl-plans 70
  codegen-ops-test 60 baselines 57 gloo-processes-test 57 checkpoint-strategy-test 51 lit 43 cuda-kernels-test 42
  doc-examples 38 cudnn-graphs-test 38 translate-roundtrip 36 packing 31 equivalence-test 31 memory 25 advice-test 15 gloo-test 31 serve-plan-test 15)

# bowline_set_test_cost(name): to be called where the test is added, for ctest knows it there alone.
function(bowline_set_test_cost name)
  list(FIND BOWLINE_TEST_COSTS ${name} at)
  if(at GREATER_EQUAL 0)
    math(EXPR at "${at} + 1")
    list(GET BOWLINE_TEST_COSTS ${at} seconds)
    set_property(TEST ${name} PROPERTY COST ${seconds})
  endif()
endfunction()
