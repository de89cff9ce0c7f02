// The whole program, and a divided one.
graph.func @f() -> (tensor<4xi32> {graph.name = "r"}) {
  %a = graph.iota dim 0 : tensor<2xi32>
  %r = graph.concat %a, %a dim 0 : (tensor<2xi32>, tensor<2xi32>) -> tensor<4xi32>
  graph.return %r : tensor<4xi32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f() -> (tensor<4xi32> {graph.name = "r"}) {
  %a = graph.iota dim 0 : tensor<1xi32>
  %b = graph.iota dim 0 : tensor<3xi32>
  %r = graph.concat %a, %b dim 0 : (tensor<1xi32>, tensor<3xi32>) -> tensor<4xi32>
  graph.return %r : tensor<4xi32>
}
