// The whole program, and a divided one.
graph.func @f(%x: tensor<6x4xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "r"}) {
  %m = graph.reduce max %x dims [0] : (tensor<6x4xf32>) -> tensor<4xf32>
  %r = graph.reduce sum %m dims [0] : (tensor<4xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f(%x: tensor<3x4xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>, graph.name = "x"}) -> (tensor<f32> {graph.name = "r"}) {
  %m = graph.reduce max %x dims [0] : (tensor<3x4xf32>) -> tensor<4xf32>
  %v = graph.reshape %m : (tensor<4xf32>) -> tensor<4xf32>
  %r = graph.reduce sum %v dims [0] : (tensor<4xf32>) -> tensor<f32>
  %a = dist.all_reduce sum %r over ["dp"] : tensor<f32>
  graph.return %a : tensor<f32>
}
