// The whole program, and a divided one.
graph.param @w : tensor<5xf32> init(#graph.normal<0.02>) key("w")
graph.func @f(%x: tensor<f32> {graph.name = "x"}) {
  %b = graph.broadcast %x dims [] : (tensor<f32>) -> tensor<5xf32>
  graph.write @w, %b : tensor<5xf32>
  graph.return
}
graph.func @g() -> (tensor<f32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<5xf32>
  %r = graph.reduce sum %w dims [0] : (tensor<5xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.param @w : tensor<3xf32> init(#graph.normal<0.02>) key("w") {dist.global_shape = array<i64: 5>, dist.sharding = #dist.sharding<[{"tp"}]>}
graph.func @f(%x: tensor<f32> {graph.name = "x"}) {
  %b = graph.broadcast %x dims [] : (tensor<f32>) -> tensor<3xf32>
  graph.write @w, %b : tensor<3xf32>
  graph.return
}
graph.func @g() -> (tensor<f32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<3xf32>
  %r = graph.reduce sum %w dims [0] : (tensor<3xf32>) -> tensor<f32>
  %a = dist.all_reduce sum %r over ["tp"] : tensor<f32>
  graph.return %a : tensor<f32>
}
