// The whole program, and a divided one.
graph.func @f() -> (tensor<f32> {graph.name = "r"}) {
  %b = arith.constant dense<1.0> : tensor<6xf32>
  %r = graph.reduce sum %b dims [0] : (tensor<6xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f() -> (tensor<f32> {graph.name = "r"}) {
  %b = arith.constant dense<1.0> : tensor<3xf32>
  %r = graph.reduce sum %b dims [0] : (tensor<3xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
