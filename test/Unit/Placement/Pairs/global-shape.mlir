// The whole program, and a divided one.
graph.func @f(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<4xf32> {graph.name = "r"}) {
  %r = arith.negf %x : tensor<4xf32>
  graph.return %r : tensor<4xf32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f(%x: tensor<4xf32> {dist.sharding = #dist.sharding<[{}]>, dist.global_shape = array<i64: 3>, graph.name = "x"}) -> (tensor<4xf32> {graph.name = "r"}) {
  %r = arith.negf %x : tensor<4xf32>
  graph.return %r : tensor<4xf32>
}
