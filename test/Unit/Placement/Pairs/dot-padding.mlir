// The whole program, and a divided one.
graph.param @w : tensor<5x4xf32> init(#graph.normal<0.02>) key("w")
graph.func @f() -> (tensor<f32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<5x4xf32>
  %m = graph.reduce sum %w dims [0] : (tensor<5x4xf32>) -> tensor<4xf32>
  %e = math.exp %w : tensor<5x4xf32>
  %d = graph.dot_general %m, %e contract [0] x [1] : (tensor<4xf32>, tensor<5x4xf32>) -> tensor<5xf32>
  %r = graph.reduce sum %d dims [0] : (tensor<5xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.param @w : tensor<3x4xf32> init(#graph.normal<0.02>) key("w") {dist.global_shape = array<i64: 5, 4>, dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.func @f() -> (tensor<f32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<3x4xf32>
  %m0 = graph.reduce sum %w dims [0] : (tensor<3x4xf32>) -> tensor<4xf32>
  %m = dist.all_reduce sum %m0 over ["tp"] : tensor<4xf32>
  %e = math.exp %w : tensor<3x4xf32>
  %d = graph.dot_general %m, %e contract [0] x [1] : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3xf32>
  %r = graph.reduce sum %d dims [0] : (tensor<3xf32>) -> tensor<f32>
  %a = dist.all_reduce sum %r over ["tp"] : tensor<f32>
  graph.return %a : tensor<f32>
}
