// RUN: bowline-opt %s --library-sums | FileCheck %s

// Not where something in between needs one of them, where other dimensions are summed, where the sum would be rounded, or
// where it is a maximum.
// CHECK-LABEL: module @refused
// CHECK-NOT: epilogue
module @refused attributes {plan.target = #plan.target<device = "cuda", arch = "nvptx64", cpu = "sm_90a", threads = 1>} {
  graph.func @needed(%x: tensor<6x5xf32>, %dy: tensor<6x7xf32>) -> tensor<5x7xf32> {
    %0 = graph.reduce sum %dy dims [0] : (tensor<6x7xf32>) -> tensor<7xf32>
    %1 = graph.broadcast %0 dims [1] : (tensor<7xf32>) -> tensor<6x7xf32>
    %2 = graph.dot_general %x, %1 contract [0] x [0] : (tensor<6x5xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>
    %3 = graph.dot_general %x, %dy contract [0] x [0] : (tensor<6x5xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>
    %4 = arith.addf %2, %3 : tensor<5x7xf32>
    graph.return %4 : tensor<5x7xf32>
  }
  graph.func @others(%x: tensor<7x5xf32>, %dy: tensor<6x7xf32>) -> (tensor<7xf32>, tensor<6x5xf32>) {
    %0 = graph.reduce sum %dy dims [0] : (tensor<6x7xf32>) -> tensor<7xf32>
    %1 = graph.dot_general %dy, %x contract [1] x [0] : (tensor<6x7xf32>, tensor<7x5xf32>) -> tensor<6x5xf32>
    graph.return %0, %1 : tensor<7xf32>, tensor<6x5xf32>
  }
  graph.func @rounded(%x: tensor<6x5xbf16>, %dy: tensor<6x7xbf16>) -> (tensor<7xbf16>, tensor<5x7xbf16>) {
    %0 = graph.reduce sum %dy dims [0] : (tensor<6x7xbf16>) -> tensor<7xbf16>
    %1 = graph.dot_general %x, %dy contract [0] x [0] : (tensor<6x5xbf16>, tensor<6x7xbf16>) -> tensor<5x7xbf16>
    graph.return %0, %1 : tensor<7xbf16>, tensor<5x7xbf16>
  }
  graph.func @maximum(%x: tensor<6x5xf32>, %dy: tensor<6x7xf32>) -> (tensor<7xf32>, tensor<5x7xf32>) {
    %0 = graph.reduce max %dy dims [0] : (tensor<6x7xf32>) -> tensor<7xf32>
    %1 = graph.dot_general %x, %dy contract [0] x [0] : (tensor<6x5xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>
    graph.return %0, %1 : tensor<7xf32>, tensor<5x7xf32>
  }
}
