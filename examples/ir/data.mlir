// Sixteen sequences, eight on each of two ranks; the gradient is added up when it is used.
dist.mesh @mesh ["dp"] [2]
graph.param @w : tensor<8x4xf32> init(#graph.fill<1.0>) key("w")
graph.state @w.grad accumulator of @w : tensor<8x4xf32> init(#graph.fill<0.0>)
graph.func @microbatch(%x: tensor<16x8xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>},
                       %dy: tensor<16x4xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>}) {
  %dw = graph.dot_general %x, %dy contract [0] x [0] : (tensor<16x8xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  graph.write @w.grad, %dw : tensor<8x4xf32>
  graph.return
}
graph.func @update() {
  %dw = graph.read @w.grad : tensor<8x4xf32>
  %w = graph.read @w : tensor<8x4xf32>
  %new = arith.subf %w, %dw : tensor<8x4xf32>
  graph.write @w, %new : tensor<8x4xf32>
  graph.return
}
