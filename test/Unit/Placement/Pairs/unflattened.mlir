// The whole program, and a divided one.
graph.param @y : tensor<6xf32> init(#graph.normal<0.02>) key("y")
graph.func @f(%x: tensor<6xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "r"}) {
  %y = graph.read @y : tensor<6xf32>
  %r = graph.dot_general %x, %y contract [0] x [0] : (tensor<6xf32>, tensor<6xf32>) -> tensor<f32>
  graph.return %r : tensor<f32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.param @y : tensor<2xf32> init(#graph.normal<0.02>) key("y") {dist.global_shape = array<i64: 6>, dist.sharding = #dist.sharding<[{"tp", "dp"}]>}
graph.func @f(%x: tensor<3xf32> {dist.sharding = #dist.sharding<[{"tp"}]>, graph.name = "x"}) -> (tensor<f32> {graph.name = "r"}) {
  %y = graph.read @y : tensor<2xf32>
  %p = graph.pad %x low [0] high [1] : (tensor<3xf32>) -> tensor<4xf32>
  %s = dist.slice %p dim 0 over ["dp"] : tensor<4xf32> -> tensor<2xf32>
  %m = graph.dot_general %s, %y contract [0] x [0] : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  %a = dist.all_reduce sum %m over ["tp","dp"] : tensor<f32>
  graph.return %a : tensor<f32>
}
