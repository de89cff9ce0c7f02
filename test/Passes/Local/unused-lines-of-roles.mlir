// In a pipeline a line of the strategy that gives a role nothing to do says which role it is.
// RUN: bowline-opt %s --pass-pipeline='builtin.module(builtin.module(coalesce-collectives))' --verify-diagnostics

module {
  dist.mesh @mesh ["pp", "dp"] [2, 2]
  dist.strategy @strategy {
    mesh @mesh ["pp", "dp"] [2, 2]
    // expected-remark @+1 {{nothing is joined in the program 'stage1': no two sums, gathers or scatters of one kind}}
    bucket_bytes 8192
  }
  module @stage0 {
    graph.func @joined(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = dist.all_reduce sum %x over ["dp"] : tensor<4xf32>
      %1 = dist.all_reduce sum %y over ["dp"] : tensor<4xf32>
      graph.return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
  }
  module @stage1 {
    graph.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
      graph.return %x : tensor<4xf32>
    }
  }
}
