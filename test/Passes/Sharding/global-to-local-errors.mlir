// What is not the operation on local types is refused until it is built.
// RUN: bowline-opt %s --propagate-shardings --global-to-local --split-input-file --verify-diagnostics

dist.mesh @mesh ["tp"] [2]
graph.param @table : tensor<8x4xf32> init(#graph.normal<0.02>) key("table") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.func @rows(%i: tensor<6xi32>) -> tensor<6x4xf32> {
  %table = graph.read @table : tensor<8x4xf32>
  // expected-error @below {{works on a table that is cut along its rows, which is not supported yet; replicate it}}
  %0 = graph.gather %table[%i] : (tensor<8x4xf32>, tensor<6xi32>) -> tensor<6x4xf32>
  graph.return %0 : tensor<6x4xf32>
}

// -----

dist.mesh @mesh ["dp"] [2]
graph.func @count(%x: tensor<6xi32> {dist.sharding = #dist.sharding<[{"dp"}]>}) -> tensor<6xi32> {
  // expected-error @below {{counts along a dimension that is cut, which is not supported yet}}
  %0 = graph.iota dim 0 : tensor<6xi32>
  %1 = arith.addi %x, %0 : tensor<6xi32>
  graph.return %1 : tensor<6xi32>
}
