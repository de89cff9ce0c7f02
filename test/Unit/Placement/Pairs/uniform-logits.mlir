// The whole program, and a divided one.
graph.func @f(%x: tensor<f32> {graph.name = "x"}, %l: tensor<4xi32> {graph.name = "l"}) -> (tensor<4xf32> {graph.name = "r"}) {
  %b = graph.broadcast %x dims [] : (tensor<f32>) -> tensor<4x8xf32>
  %loss, %lse = graph.softmax_cross_entropy %b, %l : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  graph.return %lse : tensor<4xf32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f(%x: tensor<f32> {graph.name = "x"}, %l: tensor<4xi32> {graph.name = "l"}) -> (tensor<4xf32> {graph.name = "r"}) {
  %b = graph.broadcast %x dims [] : (tensor<f32>) -> tensor<4x2xf32>
  %loss, %lse = graph.softmax_cross_entropy %b, %l : (tensor<4x2xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  graph.return %lse : tensor<4xf32>
}
