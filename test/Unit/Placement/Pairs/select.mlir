// The whole program, and a divided one.
graph.func @f(%c: tensor<4xi1> {graph.name = "c"}, %x: tensor<6x4xf32> {graph.name = "x"}, %y: tensor<4xf32> {graph.name = "y"}) -> (tensor<4xf32> {graph.name = "r"}) {
  %s = graph.reduce sum %x dims [0] : (tensor<6x4xf32>) -> tensor<4xf32>
  %r = arith.select %c, %s, %y : tensor<4xi1>, tensor<4xf32>
  graph.return %r : tensor<4xf32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f(%c: tensor<4xi1> {graph.name = "c"}, %x: tensor<3x4xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>, graph.name = "x"}, %y: tensor<4xf32> {graph.name = "y"}) -> (tensor<4xf32> {graph.name = "r"}) {
  %s = graph.reduce sum %x dims [0] : (tensor<3x4xf32>) -> tensor<4xf32>
  %q = arith.select %c, %s, %y : tensor<4xi1>, tensor<4xf32>
  %r = dist.all_reduce sum %q over ["dp"] : tensor<4xf32>
  graph.return %r : tensor<4xf32>
}
