// The whole program, and a divided one.
graph.func @f(%x: tensor<4x4xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "r"}) {
  %r = graph.reduce sum %x dims [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f(%x: tensor<4x4xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "r"}) {
  %v = graph.reshape %x : (tensor<4x4xf32>) -> tensor<16xf32>
  %p = graph.pad %v low [0] high [1] : (tensor<16xf32>) -> tensor<17xf32>
  %s = graph.slice %p at [0] sizes [4] : (tensor<17xf32>) -> tensor<4xf32>
  %r = graph.reduce sum %s dims [0] : (tensor<4xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
