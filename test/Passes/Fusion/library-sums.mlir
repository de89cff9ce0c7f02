// The sum of an operand over what its product contracts is a second result of the product.
// RUN: bowline-opt %s --library-sums --split-input-file | FileCheck %s
// RUN: bowline-opt %s --verify-each=equiv --library-sums --split-column-reductions="min-rows=1" --group-fusions --insert-init --select-kernels --schedule-commands --split-input-file -o /dev/null
// RUN: bowline-opt %s --library-sums --group-fusions --select-kernels --split-input-file | FileCheck %s --check-prefix=KERNELS

// The gradient of a bias beside that of weights [in, out], and of weights [out, in].
// CHECK-LABEL: module @gradients
// CHECK: %[[F:.*]]:2 = graph.fusion(%{{.*}}, %{{.*}}) epilogue "sum_b" : {{.*}} -> (tensor<5x7xf32>, tensor<7xf32>)
// CHECK: ^bb0(%[[X:.*]]: tensor<2x3x5xbf16>, %[[DY:.*]]: tensor<2x3x7xbf16>)
// CHECK-NEXT: %[[D:.*]] = graph.dot_general %[[X]], %[[DY]] contract [0, 1] x [0, 1]
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[DY]]
// CHECK-NEXT: %[[S:.*]] = graph.reduce sum %[[W]] dims [0, 1]
// CHECK-NEXT: graph.yield %[[D]], %[[S]]
// CHECK: %[[G:.*]]:2 = graph.fusion(%{{.*}}, %{{.*}}) epilogue "sum_a" : {{.*}} -> (tensor<7x5xf32>, tensor<7xf32>)
// CHECK-NOT: graph.fusion
// CHECK: graph.return %[[F]]#0, %[[F]]#1, %[[G]]#0, %[[G]]#1
// KERNELS: epilogue = "sum_b"
// KERNELS-SAME: [#plan.arg<read, tensor<2x3x5xbf16>>, #plan.arg<read, tensor<2x3x7xbf16>>, #plan.arg<write, tensor<5x7xf32>>, #plan.arg<write, tensor<7xf32>>, #plan.arg<write, tensor<4194560xui8>>]
// KERNELS: epilogue = "sum_a"
module @gradients attributes {plan.target = #plan.target<device = "cuda", arch = "nvptx64", cpu = "sm_90a", threads = 1>} {
  graph.func @f(%x: tensor<2x3x5xbf16> {graph.name = "x"}, %dy: tensor<2x3x7xbf16> {graph.name = "dy"}, %dz: tensor<2x3x7xbf16> {graph.name = "dz"})
      -> (tensor<5x7xf32> {graph.name = "a"}, tensor<7xf32> {graph.name = "b"}, tensor<7x5xf32> {graph.name = "c"}, tensor<7xf32> {graph.name = "d"}) {
    %0 = graph.dot_general %x, %dy contract [0, 1] x [0, 1] : (tensor<2x3x5xbf16>, tensor<2x3x7xbf16>) -> tensor<5x7xf32>
    %1 = arith.extf %dy : tensor<2x3x7xbf16> to tensor<2x3x7xf32>
    %2 = graph.reduce sum %1 dims [0, 1] : (tensor<2x3x7xf32>) -> tensor<7xf32>
    %3 = arith.extf %dz : tensor<2x3x7xbf16> to tensor<2x3x7xf32>
    %4 = graph.reduce sum %3 dims [0, 1] : (tensor<2x3x7xf32>) -> tensor<7xf32>
    %5 = graph.dot_general %dz, %x contract [0, 1] x [0, 1] : (tensor<2x3x7xbf16>, tensor<2x3x5xbf16>) -> tensor<7x5xf32>
    graph.return %0, %2, %5, %4 : tensor<5x7xf32>, tensor<7xf32>, tensor<7x5xf32>, tensor<7xf32>
  }
  graph.entry @run [@f] repeat [1]
}
