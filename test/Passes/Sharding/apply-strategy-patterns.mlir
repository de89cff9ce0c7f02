// Patterns win over defaults, the last one over those before it; axes may have any names.
// RUN: bowline-opt %s --apply-strategy | FileCheck %s

// CHECK: dist.mesh @ranks ["data", "model"] [2, 2]
dist.mesh @ranks ["dp"] [1]

dist.strategy @model {
  mesh @mesh ["data", "model"] [2, 2]
  batch "data"
  tensor_parallel "model"
  shard "layers.*" as <[{}, {"data"}]>
  shard "layers.1.*" as <[{"data"}, {}]>
}

// CHECK: graph.param @layers.0.mlp.w_up {{.*}}dist.sharding<[{}, {"data"}]>
graph.param @layers.0.mlp.w_up : tensor<6x4xf32> init(#graph.fill<0.0>) key("a") role(column)
// CHECK: graph.param @layers.1.mlp.w_up {{.*}}dist.sharding<[{"data"}, {}]>
graph.param @layers.1.mlp.w_up : tensor<6x4xf32> init(#graph.fill<0.0>) key("b") role(column)
// CHECK: graph.param @last.mlp.w_up {{.*}}dist.sharding<[{"model"}, {}]>
graph.param @last.mlp.w_up : tensor<6x4xf32> init(#graph.fill<0.0>) key("c") role(column)
// A sharding from before is replaced.
// CHECK: graph.param @norm {{.*}}dist.sharding<[{}]>
graph.param @norm : tensor<4xf32> init(#graph.fill<0.0>) key("d") role(none) {dist.sharding = #dist.sharding<[{"dp"}]>}

// Every argument with the batch in front is cut, whatever its elements; others are not.
// CHECK: graph.func loss @loss(%{{[^:]*}}: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"data"}, {}]>}
// CHECK-SAME: %{{[^:]*}}: tensor<8x3xi32> {dist.sharding = #dist.sharding<[{"data"}, {}]>}
// CHECK-SAME: %{{[^:]*}}: tensor<8xi32> {dist.sharding = #dist.sharding<[{"data"}]>}
// CHECK-SAME: %{{[^:]*}}: tensor<4x4xf32>, %{{[^:]*}}: tensor<f32>)
graph.func loss @loss(%x: tensor<8x4xf32>, %tokens: tensor<8x3xi32>, %lengths: tensor<8xi32>, %table: tensor<4x4xf32>,
                 %scale: tensor<f32>) -> tensor<8x6xf32> {
  %w = graph.read @last.mlp.w_up : tensor<6x4xf32>
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  graph.return %0 : tensor<8x6xf32>
}
