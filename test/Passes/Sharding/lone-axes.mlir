// A line that divides along an axis of one rank does nothing, and says so; level 0 and axes of several ranks say nothing.
// RUN: bowline-opt %s --split-input-file --apply-strategy --verify-diagnostics

module {
  dist.strategy @strategy {
    mesh @mesh ["dp", "tp"] [1, 1]
    // expected-remark @+1 {{nothing is divided along "dp", which has one rank}}
    zero level 3 prefetch 3
    // expected-remark @+1 {{nothing is divided along "tp", which has one rank}}
    sequence_parallel "tp"
  }
  graph.param @norm : tensor<4xf32> init(#graph.fill<1.0>) key("norm") role(none)
}

// -----

module {
  dist.strategy @strategy {
    mesh @mesh ["x", "dp", "tp"] [1, 2, 2]
    // expected-remark @+1 {{nothing is divided along "x", which has one rank}}
    shard "norm" as <[{"x"}]>
    shard "bias" as <[{"tp"}]>
    // expected-remark @+1 {{nothing is divided along "x", which has one rank}}
    zero level 2 axis "x"
  }
  graph.param @norm : tensor<4xf32> init(#graph.fill<1.0>) key("norm") role(none)
  graph.param @bias : tensor<4xf32> init(#graph.fill<1.0>) key("bias") role(none)
}

// -----

module {
  dist.strategy @strategy {
    mesh @mesh ["dp"] [1]
    zero level 0
  }
}
