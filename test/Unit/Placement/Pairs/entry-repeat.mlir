// The whole program, and a divided one.
graph.state @a accumulator of @w : tensor<5xf32> init(#graph.fill<0.0>)
graph.param @w : tensor<5xf32> init(#graph.normal<0.02>) key("w")
graph.func microbatch @m(%x: tensor<5xf32> {graph.name = "x"}) {
  %w = graph.read @a : tensor<5xf32>
  %s = arith.addf %w, %x : tensor<5xf32>
  graph.write @a, %s : tensor<5xf32>
  graph.return
}
graph.func update @u() {
  %w = graph.read @a : tensor<5xf32>
  graph.write @w, %w : tensor<5xf32>
  graph.return
}
graph.entry train_step @s [@m, @u] repeat [1, 1]
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.state @a accumulator of @w : tensor<5xf32> init(#graph.fill<0.0>)
graph.param @w : tensor<5xf32> init(#graph.normal<0.02>) key("w")
graph.func microbatch @m(%x: tensor<5xf32> {graph.name = "x"}) {
  %w = graph.read @a : tensor<5xf32>
  %s = arith.addf %w, %x : tensor<5xf32>
  graph.write @a, %s : tensor<5xf32>
  graph.return
}
graph.func update @u() {
  %w = graph.read @a : tensor<5xf32>
  graph.write @w, %w : tensor<5xf32>
  graph.return
}
graph.entry train_step @s [@u] repeat [1]
