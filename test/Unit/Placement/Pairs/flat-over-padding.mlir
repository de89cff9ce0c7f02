// The whole program, and a divided one: what lies behind the end of a gathered dimension, which is 1, is added up.
graph.param @w : tensor<3x2xf32> init(#graph.normal<0.02>) key("w")
graph.func @f() -> (tensor<f32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<3x2xf32>
  %e = math.exp %w : tensor<3x2xf32>
  %r = graph.reduce sum %e dims [0, 1] : (tensor<3x2xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
// -----
dist.mesh @mesh ["dp", "tp"] [2, 2]
graph.param @w : tensor<2x2xf32> init(#graph.normal<0.02>) key("w") {dist.global_shape = array<i64: 3, 2>, dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.func @f() -> (tensor<f32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<2x2xf32>
  %g = dist.all_gather %w dim 0 over ["tp"] : tensor<2x2xf32> -> tensor<4x2xf32>
  %e = math.exp %g : tensor<4x2xf32>
  %l = graph.reshape %e : (tensor<4x2xf32>) -> tensor<8xf32>
  %r = graph.reduce sum %l dims [0] : (tensor<8xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
