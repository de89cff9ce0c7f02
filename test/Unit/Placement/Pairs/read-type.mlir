// The whole program, and a divided one.
graph.param @w : tensor<5xf32> init(#graph.normal<0.02>) key("w")
graph.func @f() -> (tensor<5xi1> {graph.name = "r"}) {
  %w = graph.read @w : tensor<5xf32>
  %r = arith.cmpf oge, %w, %w : tensor<5xf32>
  graph.return %r : tensor<5xi1>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.param @w : tensor<5xbf16> init(#graph.normal<0.02>) key("w")
graph.func @f() -> (tensor<5xi1> {graph.name = "r"}) {
  %w = graph.read @w : tensor<5xbf16>
  %r = arith.cmpf oge, %w, %w : tensor<5xbf16>
  graph.return %r : tensor<5xi1>
}
