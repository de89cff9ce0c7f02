// The whole program, and a divided one.
graph.func @f(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<4xf32> {graph.name = "r"}) {
  %b = graph.broadcast %x dims [1] : (tensor<4xf32>) -> tensor<6x4xf32>
  %r = graph.reduce sum %b dims [0] : (tensor<6x4xf32>) -> tensor<4xf32>
  graph.return %r : tensor<4xf32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<4xf32> {graph.name = "r"}) {
  %b = graph.broadcast %x dims [1] : (tensor<4xf32>) -> tensor<3x4xf32>
  %r = graph.reduce sum %b dims [0] : (tensor<3x4xf32>) -> tensor<4xf32>
  graph.return %r : tensor<4xf32>
}
