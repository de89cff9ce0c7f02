// A group of several operations says so; one alone does not.
// RUN: bowline-opt %s --group-fusions --remark-format=emitRemark --remarks-filter=fusion -o /dev/null 2>&1 \
// RUN:   | FileCheck %s

// CHECK: remark: [Passed] GroupFusions | Category:fusion | Remark="fused 3 operations, saved 0.0 MiB of traffic"
// CHECK-NOT: fused
graph.func @f(%x: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3x4xf32>) {
  %0 = math.tanh %x : tensor<4x3xf32>
  %1 = math.cos %0 : tensor<4x3xf32>
  %2 = arith.addf %1, %0 : tensor<4x3xf32>
  %3 = graph.transpose %x perm [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  graph.return %2, %3 : tensor<4x3xf32>, tensor<3x4xf32>
}
