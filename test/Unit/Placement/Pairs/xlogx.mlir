// The whole program, and a divided one.
graph.param @w : tensor<5x4xf32> init(#graph.normal<0.02>) key("w")
graph.func @f() -> (tensor<4xf32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<5x4xf32>
  %l = math.log %w : tensor<5x4xf32>
  %d = arith.mulf %w, %l : tensor<5x4xf32>
  %r = graph.reduce sum %d dims [0] : (tensor<5x4xf32>) -> tensor<4xf32>
  graph.return %r : tensor<4xf32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.param @w : tensor<3x4xf32> init(#graph.normal<0.02>) key("w") {dist.global_shape = array<i64: 5, 4>, dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.func @f() -> (tensor<4xf32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<3x4xf32>
  %l = math.log %w : tensor<3x4xf32>
  %d = arith.mulf %w, %l : tensor<3x4xf32>
  %r = graph.reduce sum %d dims [0] : (tensor<3x4xf32>) -> tensor<4xf32>
  %a = dist.all_reduce sum %r over ["tp"] : tensor<4xf32>
  graph.return %a : tensor<4xf32>
}
