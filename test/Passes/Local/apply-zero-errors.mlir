// What cannot be divided is refused.
// RUN: bowline-opt %s --apply-zero --split-input-file --verify-diagnostics

module {
  dist.strategy @strategy {
    mesh @mesh ["dp", "tp"] [2, 2]
    // expected-error @below {{ZeRO divides along "tp", but no gradient is summed over it; the axes of which that is true are "dp"}}
    zero level 1 axis "tp"
  }
  dist.mesh @mesh ["dp", "tp"] [2, 2]
  graph.param @w : tensor<4xf32> init(#graph.fill<1.0>) key("w") {dist.sharding = #dist.sharding<[{}]>}
  graph.state @g accumulator of @w : tensor<4xf32> init(#graph.fill<0.0>) {dist.sharding = #dist.sharding<[{}], unreduced = {"dp"}>}
}

// -----

// Two key heads, which three ranks share each.
module {
  dist.strategy @strategy {
    mesh @mesh ["tp"] [6]
    // expected-error @below {{ZeRO divides along "tp", which is divided itself, as groups of its ranks share key heads; use another axis, or at most as many ranks along "tp" as there are key heads}}
    zero level 3 axis "tp"
  }
  dist.mesh @mesh ["tp/0", "tp/1"] [2, 3]
}

// -----

dist.strategy @strategy {
  mesh @mesh ["dp"] [2]
  zero level 2
}
dist.mesh @mesh ["dp"] [2]
graph.param @w : tensor<4xf32> init(#graph.fill<1.0>) key("w") {dist.sharding = #dist.sharding<[{}]>}
graph.state @g accumulator of @w : tensor<4xf32> init(#graph.fill<0.0>) {dist.sharding = #dist.sharding<[{}], unreduced = {"dp"}>}
graph.func @update() -> tensor<4xf32> {
  %g = graph.read @g : tensor<4xf32>
  // expected-error @below {{uses the summands of a sum over "dp" that ZeRO divides; only additions and all-reduces can be divided with them. Use level 1}}
  %y = arith.negf %g : tensor<4xf32>
  graph.return %y : tensor<4xf32>
}
