// The whole program, and a divided one.
graph.func microbatch @m(%x: tensor<5xf32> {graph.name = "x"}) -> (tensor<5xf32> {graph.name = "r"}) {
  %s = arith.negf %x : tensor<5xf32>
  %r = math.exp %s : tensor<5xf32>
  graph.return %r : tensor<5xf32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.state @k stash : tensor<5xf32> init(#graph.fill<0.0>) slots 1
graph.func @f1(%x: tensor<5xf32> {graph.name = "x"}) {
  %s = arith.negf %x : tensor<5xf32>
  graph.write @k, %s : tensor<5xf32>
  graph.return
}
graph.func @f3() -> (tensor<5xf32> {graph.name = "r"}) {
  %s = graph.read @k : tensor<5xf32>
  %r = math.exp %s : tensor<5xf32>
  graph.return %r : tensor<5xf32>
}
graph.func @f2(%x: tensor<5xf32> {graph.name = "x"}) {
  graph.write @k, %x : tensor<5xf32>
  graph.return
}
