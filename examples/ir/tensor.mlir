// An MLP: the columns of the first matrix and the rows of the second are sharded, so each rank has a partial sum.
dist.mesh @mesh ["tp"] [2]
graph.param @up : tensor<8x32xf32> init(#graph.fill<1.0>) key("up") {dist.sharding = #dist.sharding<[{}, {"tp"}]>}
graph.param @down : tensor<32x8xf32> init(#graph.fill<1.0>) key("down") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.func @mlp(%x: tensor<16x8xf32> {dist.sharding = #dist.sharding<[{}, {}]>})
    -> (tensor<16x8xf32> {dist.sharding = #dist.sharding<[{}, {}]>}) {
  %up = graph.read @up : tensor<8x32xf32>
  %down = graph.read @down : tensor<32x8xf32>
  %h = graph.dot_general %x, %up contract [1] x [0] : (tensor<16x8xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
  %a = graph.silu %h : tensor<16x32xf32>
  %y = graph.dot_general %a, %down contract [1] x [0] : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
  graph.return %y : tensor<16x8xf32>
}
