// The whole program, and a divided one.
graph.state @a accumulator of @w : tensor<5xf32> init(#graph.fill<0.0>)
graph.param @w : tensor<5xf32> init(#graph.normal<0.02>) key("w")
graph.func microbatch @m(%x: tensor<5xf32> {graph.name = "x"}) {
  %w = graph.read @a : tensor<5xf32>
  %s = arith.addf %w, %x : tensor<5xf32>
  graph.write @a, %s : tensor<5xf32>
  graph.return
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.state @a accumulator of @w : tensor<5xf32> init(#graph.fill<0.0>)
graph.param @w : tensor<5xf32> init(#graph.normal<0.02>) key("w")
graph.func @m1(%x: tensor<5xf32> {graph.name = "x"}) {
  %w = graph.read @a : tensor<5xf32>
  %s = arith.addf %w, %x : tensor<5xf32>
  graph.write @a, %s : tensor<5xf32>
  graph.return
}
graph.func @m2(%x: tensor<5xf32> {graph.name = "x"}) {
  %w = graph.read @a : tensor<5xf32>
  %s = arith.addf %w, %x : tensor<5xf32>
  graph.write @a, %s : tensor<5xf32>
  graph.return
}
