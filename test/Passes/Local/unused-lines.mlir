// A line of the strategy that gives a program nothing to do says so; one that does something, or that nobody wrote, does
// not.
// RUN: bowline-opt %s --split-input-file --chunk-collectives --coalesce-collectives --verify-diagnostics

module {
  dist.mesh @mesh ["pp"] [2]
  dist.strategy @strategy {
    mesh @mesh ["pp"] [2]
    // expected-remark @+1 {{nothing is joined: no two sums, gathers or scatters of one kind over the same axes are independent of each other}}
    bucket_bytes 8192
    // expected-remark @+1 {{nothing is divided: no product with rows for several chunks has a sum, a scatter or a gather beside it}}
    overlap_chunks 2
  }
  graph.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
    graph.return %x : tensor<4xf32>
  }
}

// -----

module {
  dist.mesh @mesh ["dp"] [2]
  dist.strategy @strategy {
    mesh @mesh ["dp"] [2]
    // expected-remark @+1 {{nothing is joined: no two sums, gathers or scatters}}
    bucket_bytes 8192
  }
  graph.func @one_waits_for_the_other(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = dist.all_reduce sum %x over ["dp"] : tensor<4xf32>
    %1 = arith.negf %0 : tensor<4xf32>
    %2 = dist.all_reduce sum %1 over ["dp"] : tensor<4xf32>
    graph.return %2 : tensor<4xf32>
  }
}

// -----

module {
  dist.mesh @mesh ["dp"] [1]
  dist.strategy @strategy {
    mesh @mesh ["dp"] [1]
    // expected-remark @+1 {{nothing is joined: there is one rank}}
    bucket_bytes 8192
    // expected-remark @+1 {{nothing is divided: there is one rank}}
    overlap_chunks 2
  }
}

// -----

// Two that could be together are kept apart by the line.
module {
  dist.mesh @mesh ["dp"] [2]
  dist.strategy @strategy {
    mesh @mesh ["dp"] [2]
    bucket_bytes 0
  }
  graph.func @apart(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = dist.all_reduce sum %x over ["dp"] : tensor<4xf32>
    %1 = dist.all_reduce sum %y over ["dp"] : tensor<4xf32>
    graph.return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

module {
  dist.mesh @mesh ["pp"] [2]
  dist.strategy @strategy {
    mesh @mesh ["pp"] [2]
  }
  graph.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
    graph.return %x : tensor<4xf32>
  }
}
