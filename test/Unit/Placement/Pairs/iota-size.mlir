// The whole program, and a divided one.
graph.func @f() -> (tensor<i32> {graph.name = "r"}) {
  %i = graph.iota dim 0 : tensor<6xi32>
  %r = graph.reduce max %i dims [0] : (tensor<6xi32>) -> tensor<i32>
  graph.return %r : tensor<i32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.func @f() -> (tensor<i32> {graph.name = "r"}) {
  %i = graph.iota dim 0 : tensor<3xi32>
  %r = graph.reduce max %i dims [0] : (tensor<3xi32>) -> tensor<i32>
  graph.return %r : tensor<i32>
}
