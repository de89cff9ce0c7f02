// A '?' in the strategy to which propagation adds no axis says so; one that gets an axis does not.
// RUN: bowline-opt %s --apply-strategy --propagate-shardings --split-input-file --verify-diagnostics | FileCheck %s

dist.strategy @s {
  mesh @mesh ["dp", "tp"] [2, 2]
  // expected-remark @+1 {{'?' adds no axis to 'b' and 1 more parameter: values computed with them are sharded along no further axis in these dimensions}}
  shard "{b,c}" as <[{?}]>
  shard "w" as <[{}, {"tp"}]>
}
// CHECK: graph.param @w {{.*}}dist.sharding = #dist.sharding<[{}, {"tp"}]>
// CHECK: graph.param @b {{.*}}dist.sharding = #dist.sharding<[{}]>
graph.param @w : tensor<4x8xf32> init(#graph.fill<1.0>) key("w")
graph.param @b : tensor<4xf32> init(#graph.fill<1.0>) key("b")
graph.param @c : tensor<4xf32> init(#graph.fill<1.0>) key("c")
graph.func @f(%x: tensor<2x4xi32>) {
  %w = graph.read @w : tensor<4x8xf32>
  %y = arith.addf %w, %w : tensor<4x8xf32>
  graph.write @w, %y : tensor<4x8xf32>
  graph.return
}

// -----

dist.strategy @s {
  mesh @mesh ["dp", "tp"] [2, 2]
  shard "{a,b}" as <[{?}, {}]>
  shard "w" as <[{"tp"}, {}]>
}
// CHECK: graph.param @a {{.*}}dist.sharding = #dist.sharding<[{"tp"}, {}]>
graph.param @w : tensor<4x8xf32> init(#graph.fill<1.0>) key("w")
graph.param @a : tensor<4x8xf32> init(#graph.fill<1.0>) key("a")
graph.param @b : tensor<4x8xf32> init(#graph.fill<1.0>) key("b")
graph.func @f(%x: tensor<2x4xi32>) {
  %w = graph.read @w : tensor<4x8xf32>
  %a = graph.read @a : tensor<4x8xf32>
  %y = arith.addf %w, %a : tensor<4x8xf32>
  graph.write @w, %y : tensor<4x8xf32>
  graph.return
}
