// The whole program, and a divided one.
graph.param @w : tensor<5x5xf32> init(#graph.normal<0.02>) key("w")
graph.func @f() -> (tensor<5xf32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<5x5xf32>
  %e = math.exp %w : tensor<5x5xf32>
  %r = graph.reduce sum %e dims [0] : (tensor<5x5xf32>) -> tensor<5xf32>
  %q = graph.reduce sum %r dims [0] : (tensor<5xf32>) -> tensor<f32>
  %b = graph.broadcast %q dims [] : (tensor<f32>) -> tensor<5xf32>
  graph.return %b : tensor<5xf32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.param @w : tensor<3x3xf32> init(#graph.normal<0.02>) key("w") {dist.global_shape = array<i64: 5, 5>, dist.sharding = #dist.sharding<[{"dp"}, {"tp"}]>}
graph.func @f() -> (tensor<5xf32> {graph.name = "r"}) {
  %w = graph.read @w : tensor<3x3xf32>
  %e = math.exp %w : tensor<3x3xf32>
  %three = arith.constant dense<3> : tensor<i32>
  %five = arith.constant dense<5> : tensor<3x3xi32>
  %z = arith.constant dense<0.0> : tensor<3x3xf32>
  %i = graph.iota dim 0 : tensor<3xi32>
  %p = dist.coordinate over ["tp"] : tensor<i32>
  %m = arith.muli %p, %three : tensor<i32>
  %mb = graph.broadcast %m dims [] : (tensor<i32>) -> tensor<3xi32>
  %n = arith.addi %i, %mb : tensor<3xi32>
  %nb = graph.broadcast %n dims [1] : (tensor<3xi32>) -> tensor<3x3xi32>
  %c = arith.cmpi slt, %nb, %five : tensor<3x3xi32>
  %s = arith.select %c, %e, %z : tensor<3x3xi1>, tensor<3x3xf32>
  %r = graph.reduce sum %s dims [0] : (tensor<3x3xf32>) -> tensor<3xf32>
  %q = graph.reduce sum %r dims [0] : (tensor<3xf32>) -> tensor<f32>
  %a = dist.all_reduce sum %q over ["dp", "tp"] : tensor<f32>
  %b = graph.broadcast %a dims [] : (tensor<f32>) -> tensor<5xf32>
  graph.return %b : tensor<5xf32>
}
