// The whole program, and a divided one.
graph.param @w : tensor<5xf32> init(#graph.normal<0.02>) key("w")
graph.func @f() -> (tensor<f32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<5xf32>
  %e = math.exp %w : tensor<5xf32>
  %r = graph.reduce sum %e dims [0] : (tensor<5xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.param @w : tensor<3xf32> init(#graph.normal<0.02>) key("w") {dist.global_shape = array<i64: 5>, dist.sharding = #dist.sharding<[{"tp"}]>}
graph.func @f() -> (tensor<f32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<3xf32>
  %e = math.exp %w : tensor<3xf32>
  %p = graph.pad %e low [0] high [1] : (tensor<3xf32>) -> tensor<4xf32>
  %r = graph.reduce sum %p dims [0] : (tensor<4xf32>) -> tensor<f32>
  %a = dist.all_reduce sum %r over ["tp"] : tensor<f32>
  graph.return %a : tensor<f32>
}
