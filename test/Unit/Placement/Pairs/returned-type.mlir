// The whole program, and a divided one.
graph.func @f(%x: tensor<6xf32> {graph.name = "x"}) -> (tensor<6xf32> {graph.name = "r"}) {
  %c = arith.constant dense<1.0> : tensor<6xf32>
  graph.return %c : tensor<6xf32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f(%x: tensor<6xf32> {graph.name = "x"}) -> (tensor<2xbf16> {graph.name = "r"}) {
  %c = arith.constant dense<1.0> : tensor<2xbf16>
  graph.return %c : tensor<2xbf16>
}
