// Each rank of a ring multiplies its rows with those that its neighbour passed on, and passes them back; all get all.
module attributes {plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "x86-64-v3", threads = 1>} {
  dist.mesh @mesh ["ring"] [3]
  module {
    graph.entry @run [@f] repeat [1]
    graph.func @f(%x: tensor<2x5xf32> {dist.sharding = #dist.sharding<[{"ring"}, {}]>, dist.global_shape = array<i64: 6, 5>})
        -> tensor<6x5xf32> {
      %next = dist.permute %x by 1 over ["ring"] why "ring: rows of the neighbour" : tensor<2x5xf32>
      %product = arith.mulf %next, %x : tensor<2x5xf32>
      %back = dist.permute %product by -1 over ["ring"] why "ring: and back" : tensor<2x5xf32>
      %all = dist.all_gather %back dim 0 over ["ring"] : tensor<2x5xf32> -> tensor<6x5xf32>
      graph.return %all : tensor<6x5xf32>
    }
  }
}
