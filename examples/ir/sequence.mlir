// The same MLP between residual streams that are sharded along the sequence: a gather and a scatter instead of the sum.
dist.mesh @mesh ["tp"] [2]
graph.param @up : tensor<8x32xf32> init(#graph.fill<1.0>) key("up") {dist.sharding = #dist.sharding<[{}, {"tp"}]>}
graph.param @down : tensor<32x8xf32> init(#graph.fill<1.0>) key("down") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.param @out : tensor<16x8xf32> init(#graph.fill<0.0>) key("out") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.func @mlp(%x: tensor<16x8xf32> {dist.sharding = #dist.sharding<[{"tp"}, {}]>}) {
  %up = graph.read @up : tensor<8x32xf32>
  %down = graph.read @down : tensor<32x8xf32>
  %n = arith.mulf %x, %x : tensor<16x8xf32>
  %whole = dist.reshard %n to <[{}, {}]> : tensor<16x8xf32>
  %h = graph.dot_general %whole, %up contract [1] x [0] : (tensor<16x8xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
  %a = graph.silu %h : tensor<16x32xf32>
  %y = graph.dot_general %a, %down contract [1] x [0] : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
  %r = arith.addf %x, %y : tensor<16x8xf32>
  graph.write @out, %r : tensor<16x8xf32>
  graph.return
}
