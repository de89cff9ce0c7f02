// The whole program, and a divided one.
graph.param @w : tensor<5x4xf32> init(#graph.normal<0.02>) key("w")
graph.func @f() -> (tensor<4xf32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<5x4xf32>
  %m = graph.reduce max %w dims [0] : (tensor<5x4xf32>) -> tensor<4xf32>
  %r = arith.negf %m : tensor<4xf32>
  graph.return %r : tensor<4xf32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.param @w : tensor<3x4xf32> init(#graph.normal<0.02>) key("w") {dist.global_shape = array<i64: 5, 4>, dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.func @f() -> (tensor<4xf32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<3x4xf32>
  %m = graph.reduce max %w dims [0] : (tensor<3x4xf32>) -> tensor<4xf32>
  %n = dist.all_reduce max %m over ["tp"] : tensor<4xf32>
  %r = arith.negf %n : tensor<4xf32>
  graph.return %r : tensor<4xf32>
}
