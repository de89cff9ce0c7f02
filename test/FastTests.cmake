# The tests of `make check-fast`: those that find most mistakes for their time, for two minutes after a build on two cores.
# A new test that takes long does not go into this list: `make check` runs it.
set(BOWLINE_FAST_TESTS
  base-test safetensors-test plan-test hal-test loopback-test comm-control-test session-test session-fault-test session-overlap-loopback-test train-test
  check-test plan-picture-test check-meaning-test check-ranks-test check-rank-mutation-test
  hf-config-test hf-weights-test hf-import-test
  factor-rule-test gradient-test interpreter-test equivalence-test placement-test
  pass-algorithms-test phases-test strategy-test random-program-test schedules-test stages-test sharding-test
  codegen-region-test codegen-math-test codegen-epilogue-test op-agreement-test expert-block-test train-agreement-test
  kernels-fast-test targets-test lit layering one-definition architecture-page links prose target-names
  compiler-without-kernels)

# Targets that those tests are or run.
add_custom_target(fast-tests)

# bowline_label_test(name): to be called where the test is added, for ctest knows it there alone.
function(bowline_label_test name)
  bowline_set_test_cost(${name})
  if(name IN_LIST BOWLINE_FAST_TESTS)
    set_property(TEST ${name} APPEND PROPERTY LABELS fast)
    if(TARGET ${name})
      add_dependencies(fast-tests ${name})
    endif()
  endif()
endfunction()
