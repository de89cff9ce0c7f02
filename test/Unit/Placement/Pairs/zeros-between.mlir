// The whole program, and a divided one.
graph.func @f(%x: tensor<6xf32> {graph.name = "x"}, %y: tensor<6xf32> {graph.name = "y"}) -> (tensor<f32> {graph.name = "r"}) {
  %m = arith.mulf %x, %y : tensor<6xf32>
  %r = graph.reduce sum %m dims [0] : (tensor<6xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f(%x: tensor<3xf32> {dist.sharding = #dist.sharding<[{"tp"}]>, graph.name = "x"}, %y: tensor<6xf32> {graph.name = "y"}) -> (tensor<f32> {graph.name = "r"}) {
  %p = graph.pad %x low [0] high [1] : (tensor<3xf32>) -> tensor<4xf32>
  %q = graph.pad %y low [0] high [2] : (tensor<6xf32>) -> tensor<8xf32>
  %s = dist.slice %q dim 0 over ["tp"] : tensor<8xf32> -> tensor<4xf32>
  %m = arith.mulf %p, %s : tensor<4xf32>
  %r = graph.reduce sum %m dims [0] : (tensor<4xf32>) -> tensor<f32>
  %a = dist.all_reduce sum %r over ["tp"] : tensor<f32>
  graph.return %a : tensor<f32>
}
