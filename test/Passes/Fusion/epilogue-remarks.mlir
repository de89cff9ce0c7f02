// Each epilogue says how much it saves: both ways to memory, or one where something else reads the product.
// RUN: bowline-opt %s --group-fusions --fuse-epilogues --remark-format=emitRemark --remarks-filter=fusion -o /dev/null 2>&1 \
// RUN:   | FileCheck %s

// 512 x 512 values of f32 are 1 MiB.
// CHECK-NOT: FuseEpilogues
// CHECK: remark: [Passed] FuseEpilogues | Category:fusion | Remark="folded 2 operations into a contraction, saved 2.0 MiB of traffic"
// CHECK-NOT: FuseEpilogues
// CHECK: remark: [Passed] FuseEpilogues | Category:fusion | Remark="folded 1 operations into a contraction, saved 1.0 MiB of traffic"
// CHECK-NOT: FuseEpilogues
graph.func @f(%x: tensor<512x512xf32>, %r: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512x512xf32>) {
  %0 = graph.dot_general %x, %x contract [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %1 = graph.silu %0 : tensor<512x512xf32>
  %2 = arith.addf %1, %r : tensor<512x512xf32>
  %3 = graph.dot_general %2, %x contract [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %4 = graph.silu %3 : tensor<512x512xf32>
  %5 = graph.dot_general %3, %x contract [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  graph.return %4, %5 : tensor<512x512xf32>, tensor<512x512xf32>
}
