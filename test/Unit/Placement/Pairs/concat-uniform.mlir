// The whole program, and a divided one.
graph.func @f(%x: tensor<f32> {graph.name = "x"}, %y: tensor<f32> {graph.name = "y"}) -> (tensor<4xf32> {graph.name = "r"}) {
  %a = graph.broadcast %x dims [] : (tensor<f32>) -> tensor<2xf32>
  %b = graph.broadcast %y dims [] : (tensor<f32>) -> tensor<2xf32>
  %r = graph.concat %a, %b dim 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  graph.return %r : tensor<4xf32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f(%x: tensor<f32> {graph.name = "x"}, %y: tensor<f32> {graph.name = "y"}) -> (tensor<4xf32> {graph.name = "r"}) {
  %a = graph.broadcast %x dims [] : (tensor<f32>) -> tensor<1xf32>
  %b = graph.broadcast %y dims [] : (tensor<f32>) -> tensor<3xf32>
  %r = graph.concat %a, %b dim 0 : (tensor<1xf32>, tensor<3xf32>) -> tensor<4xf32>
  graph.return %r : tensor<4xf32>
}
