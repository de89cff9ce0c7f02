// The whole program, and a divided one.
graph.func @f(%x: tensor<f32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "r"}) {
  %b = graph.broadcast %x dims [] : (tensor<f32>) -> tensor<6xf32>
  %r = graph.reduce sum %b dims [0] : (tensor<6xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f(%x: tensor<f32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "r"}) {
  %b = graph.broadcast %x dims [] : (tensor<f32>) -> tensor<3xf32>
  %r = graph.reduce sum %b dims [0] : (tensor<3xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
