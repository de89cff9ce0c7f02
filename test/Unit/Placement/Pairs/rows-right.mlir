// The whole program, and a divided one.
graph.param @t : tensor<8x4xf32> init(#graph.normal<0.02>) key("t")
graph.func @f(%i: tensor<4xi32> {graph.name = "i"}) -> (tensor<4x4xf32> {graph.name = "r"}) {
  %t = graph.read @t : tensor<8x4xf32>
  %r = graph.gather %t[%i] : (tensor<8x4xf32>, tensor<4xi32>) -> tensor<4x4xf32>
  graph.return %r : tensor<4x4xf32>
}
// -----
dist.mesh @mesh ["dp","tp"] [2,2]
graph.param @t : tensor<4x4xf32> init(#graph.normal<0.02>) key("t") {dist.global_shape = array<i64: 8, 4>, dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.func @f(%i: tensor<4xi32> {graph.name = "i"}) -> (tensor<4x4xf32> {graph.name = "r"}) {
  %t = graph.read @t : tensor<4x4xf32>
  %four = arith.constant dense<4> : tensor<i32>
  %three = arith.constant dense<3> : tensor<i32>
  %c0 = arith.constant dense<0> : tensor<4xi32>
  %c4 = arith.constant dense<4> : tensor<4xi32>
  %d0 = arith.constant dense<0> : tensor<4x4xi32>
  %d4 = arith.constant dense<4> : tensor<4x4xi32>
  %z = arith.constant dense<0.0> : tensor<4x4xf32>
  %p = dist.coordinate over ["tp"] : tensor<i32>
  %q = arith.muli %p, %four : tensor<i32>
  %b = graph.broadcast %q dims [] : (tensor<i32>) -> tensor<4xi32>
  %s = arith.subi %i, %b : tensor<4xi32>
  
  %g = arith.cmpi sge, %s, %c0 : tensor<4xi32>
  %l = arith.cmpi slt, %s, %c4 : tensor<4xi32>
  %in = arith.select %l, %s, %c0 : tensor<4xi1>, tensor<4xi32>
  %ou = arith.select %g, %in, %c0 : tensor<4xi1>, tensor<4xi32>
  %r = graph.gather %t[%ou] in_range : (tensor<4x4xf32>, tensor<4xi32>) -> tensor<4x4xf32>
  %bb = graph.broadcast %s dims [0] : (tensor<4xi32>) -> tensor<4x4xi32>
  %gg = arith.cmpi sge, %bb, %d0 : tensor<4x4xi32>
  %ll = arith.cmpi slt, %bb, %d4 : tensor<4x4xi32>
  %i2 = arith.select %ll, %r, %z : tensor<4x4xi1>, tensor<4x4xf32>
  %o2 = arith.select %gg, %i2, %z : tensor<4x4xi1>, tensor<4x4xf32>
  %a = dist.all_reduce sum %o2 over ["tp"] : tensor<4x4xf32>
  graph.return %a : tensor<4x4xf32>
}
