// Groups that no library computes with their product stay.
// RUN: bowline-opt %s --group-fusions --library-epilogues --split-input-file | FileCheck %s
// RUN: bowline-opt %s --group-fusions --library-epilogues --remark-format=emitRemark --remarks-filter=fusion --split-input-file \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK-NOT: LibraryEpilogues

// What no library computes, or not like this, stays a group of its own: a kept input with rows of 7 elements, GELU by
// erf, GELU in f32, a bias per row, a product that something else reads, a residual.
// CHECK-LABEL: module @refused
// CHECK-NOT: epilogue
module @refused attributes {plan.target = #plan.target<device = "cuda", arch = "nvptx64", cpu = "sm_90a", threads = 1>} {
  graph.func @kept(%x: tensor<3x5xbf16>, %w: tensor<5x7xbf16>) -> (tensor<3x7xbf16>, tensor<3x7xbf16>) {
    %c = arith.constant dense<0.5> : tensor<7xbf16>
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xbf16>, tensor<5x7xbf16>) -> tensor<3x7xbf16>
    %rows = graph.broadcast %c dims [1] : (tensor<7xbf16>) -> tensor<3x7xbf16>
    %1 = arith.addf %0, %rows : tensor<3x7xbf16>
    %2 = graph.gelu tanh %1 : tensor<3x7xbf16>
    graph.return %1, %2 : tensor<3x7xbf16>, tensor<3x7xbf16>
  }
  graph.func @erf(%x: tensor<3x5xbf16>, %w: tensor<5x8xbf16>) -> tensor<3x8xbf16> {
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xbf16>, tensor<5x8xbf16>) -> tensor<3x8xbf16>
    %1 = graph.gelu erf %0 : tensor<3x8xbf16>
    graph.return %1 : tensor<3x8xbf16>
  }
  graph.func @wide(%x: tensor<3x5xf32>, %w: tensor<5x8xf32>) -> tensor<3x8xf32> {
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xf32>, tensor<5x8xf32>) -> tensor<3x8xf32>
    %1 = graph.gelu tanh %0 : tensor<3x8xf32>
    graph.return %1 : tensor<3x8xf32>
  }
  graph.func @per_row(%x: tensor<3x5xf32>, %w: tensor<5x8xf32>, %b: tensor<3xf32>) -> tensor<3x8xf32> {
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xf32>, tensor<5x8xf32>) -> tensor<3x8xf32>
    %columns = graph.broadcast %b dims [0] : (tensor<3xf32>) -> tensor<3x8xf32>
    %1 = arith.addf %0, %columns : tensor<3x8xf32>
    graph.return %1 : tensor<3x8xf32>
  }
  graph.func @used(%x: tensor<3x5xf32>, %w: tensor<5x8xf32>, %b: tensor<8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xf32>, tensor<5x8xf32>) -> tensor<3x8xf32>
    %rows = graph.broadcast %b dims [1] : (tensor<8xf32>) -> tensor<3x8xf32>
    %1 = arith.addf %0, %rows : tensor<3x8xf32>
    graph.return %0, %1 : tensor<3x8xf32>, tensor<3x8xf32>
  }
  graph.func @residual(%x: tensor<3x5xf32>, %w: tensor<5x8xf32>, %r: tensor<3x8xf32>) -> tensor<3x8xf32> {
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xf32>, tensor<5x8xf32>) -> tensor<3x8xf32>
    %1 = arith.addf %0, %r : tensor<3x8xf32>
    graph.return %1 : tensor<3x8xf32>
  }
}

// -----

// Processors generate epilogues, and no library has one.
// CHECK-LABEL: module @processor
// CHECK-NOT: epilogue
module @processor {
  graph.func @f(%x: tensor<3x5xf32>, %w: tensor<5x8xf32>, %b: tensor<8xf32>) -> tensor<3x8xf32> {
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xf32>, tensor<5x8xf32>) -> tensor<3x8xf32>
    %rows = graph.broadcast %b dims [1] : (tensor<8xf32>) -> tensor<3x8xf32>
    %1 = arith.addf %0, %rows : tensor<3x8xf32>
    graph.return %1 : tensor<3x8xf32>
  }
}
