// The whole program, and a divided one.
graph.param @w : tensor<4x4xf32> init(#graph.normal<0.02>) key("w")
graph.func @f(%x: tensor<6xf32> {graph.name = "x"}) {
  %w = graph.read @w : tensor<4x4xf32>
  %n = graph.reduce sum %x dims [0] : (tensor<6xf32>) -> tensor<f32>
  %b = graph.broadcast %n dims [] : (tensor<f32>) -> tensor<4x4xf32>
  %r = arith.mulf %w, %b : tensor<4x4xf32>
  graph.write @w, %r : tensor<4x4xf32>
  graph.return
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.param @w : tensor<8xf32> init(#graph.normal<0.02>) key("w") {dist.global_shape = array<i64: 4, 4>, dist.flat_axes = ["dp"], dist.flat_shape = array<i64: 4, 4>, dist.sharding = #dist.sharding<[{}, {}]>}
graph.func @f(%x: tensor<3xf32> {dist.sharding = #dist.sharding<[{"dp"}]>, graph.name = "x"}) {
  %w = graph.read @w : tensor<8xf32>
  %n = graph.reduce sum %x dims [0] : (tensor<3xf32>) -> tensor<f32>
  %b = graph.broadcast %n dims [] : (tensor<f32>) -> tensor<8xf32>
  %r = arith.mulf %w, %b : tensor<8xf32>
  %a = dist.all_reduce sum %r over ["dp"] : tensor<8xf32>
  graph.write @w, %a : tensor<8xf32>
  graph.return
}
