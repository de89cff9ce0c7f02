// ZeRO 3: of 20 elements each of two ranks keeps ten, and gathers all for the time in which it needs them.
dist.strategy @strategy {
  mesh @mesh ["dp"] [2]
  zero level 3
}
dist.mesh @mesh ["dp"] [2]
graph.param @w : tensor<4x5xf32> init(#graph.fill<1.0>) key("w") {dist.sharding = #dist.sharding<[{}, {}]>}
graph.state @w.grad accumulator of @w : tensor<4x5xf32> init(#graph.fill<0.0>) {dist.sharding = #dist.sharding<[{}, {}], unreduced = {"dp"}>}
graph.state @w.m saved of @w : tensor<4x5xf32> init(#graph.fill<0.0>) {dist.sharding = #dist.sharding<[{}, {}]>}
graph.func @microbatch(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>}) {
  %w = graph.read @w : tensor<4x5xf32>
  %y = graph.dot_general %x, %w contract [1] x [0] : (tensor<8x4xf32>, tensor<4x5xf32>) -> tensor<8x5xf32>
  %dw = graph.dot_general %x, %y contract [0] x [0] : (tensor<8x4xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  graph.write @w.grad, %dw : tensor<4x5xf32>
  graph.return
}
graph.func @update() {
  %part = graph.read @w.grad : tensor<4x5xf32>
  %dw = dist.all_reduce sum %part over ["dp"] : tensor<4x5xf32>
  %m = graph.read @w.m : tensor<4x5xf32>
  %next = arith.addf %m, %dw : tensor<4x5xf32>
  graph.write @w.m, %next : tensor<4x5xf32>
  %w = graph.read @w : tensor<4x5xf32>
  %new = arith.subf %w, %next : tensor<4x5xf32>
  graph.write @w, %new : tensor<4x5xf32>
  graph.return
}
