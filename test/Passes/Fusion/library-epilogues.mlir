// A library computes with a product what it can.
// RUN: bowline-opt %s --group-fusions --library-epilogues --split-input-file | FileCheck %s
// Kernels are called with what the library needs, and programs mean what they meant, down to commands.
// RUN: bowline-opt %s --verify-each=equiv --group-fusions --library-epilogues --insert-init --select-kernels --schedule-commands --split-input-file -o /dev/null
// RUN: bowline-opt %s --group-fusions --library-epilogues --select-kernels --split-input-file | FileCheck %s --check-prefix=KERNELS
// RUN: bowline-opt %s --group-fusions --library-epilogues --remark-format=emitRemark --remarks-filter=fusion --split-input-file \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: [Passed] LibraryEpilogues | Category:fusion | Remark="a library computes 'bias' with a product, saved 0.0 MiB of traffic"
// CHECK-LABEL: module @bias
// CHECK: %[[F:.*]] = graph.fusion(%x, %w, %b) epilogue "bias" : {{.*}} -> tensor<3x7xf32>
// CHECK-NEXT: ^bb0(%[[FX:.*]]: tensor<3x5xf32>, %[[FW:.*]]: tensor<7x5xf32>, %[[FB:.*]]: tensor<7xf32>)
// CHECK-NEXT: %[[D:.*]] = graph.dot_general %[[FX]], %[[FW]] contract [1] x [1]
// CHECK-NEXT: %[[R:.*]] = graph.broadcast %[[FB]] dims [1]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[R]], %[[D]]
// CHECK-NEXT: graph.yield %[[S]]
// CHECK: graph.return %[[F]]
// KERNELS: plan.kernel @matmul.0 registered "matmul" config {a_strides = array<i64: 0, 5, 1>, b_strides = array<i64: 0, 1, 5>, batch = 1 : i64, epilogue = "bias", k = 5 : i64, m = 3 : i64, n = 7 : i64}
// KERNELS-SAME: [#plan.arg<read, tensor<3x5xf32>>, #plan.arg<read, tensor<7x5xf32>>, #plan.arg<read, tensor<7xf32>>, #plan.arg<write, tensor<3x7xf32>>, #plan.arg<write, tensor<4194560xui8>>]
module @bias attributes {plan.target = #plan.target<device = "cuda", arch = "nvptx64", cpu = "sm_90a", threads = 1>} {
  graph.func @f(%x: tensor<3x5xf32> {graph.name = "x"}, %w: tensor<7x5xf32> {graph.name = "w"}, %b: tensor<7xf32> {graph.name = "b"})
      -> (tensor<3x7xf32> {graph.name = "y"}) {
    %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<3x5xf32>, tensor<7x5xf32>) -> tensor<3x7xf32>
    %rows = graph.broadcast %b dims [1] : (tensor<7xf32>) -> tensor<3x7xf32>
    %1 = arith.addf %rows, %0 : tensor<3x7xf32>
    graph.return %1 : tensor<3x7xf32>
  }
  graph.entry @run [@f] repeat [1]
}

// -----

// Biases of bf16 products are rounded before, several dimensions are columns, and GELU keeps what it is applied to where
// that is used.
// REMARK: 'bias_gelu_kept'
// CHECK-LABEL: module @kept
// CHECK: %[[B:.*]] = graph.fusion(%{{.*}}) : (tensor<2x4xf32>) -> tensor<2x4xbf16>
// CHECK: arith.truncf
// CHECK: %[[F:.*]]:2 = graph.fusion(%{{.*}}, %{{.*}}, %[[B]]) epilogue "bias_gelu_kept" : {{.*}} -> (tensor<3x2x4xbf16>, tensor<3x2x4xbf16>)
// CHECK: %[[D:.*]] = graph.dot_general
// CHECK-NEXT: %[[R:.*]] = graph.broadcast %{{.*}} dims [1, 2] : (tensor<2x4xbf16>) -> tensor<3x2x4xbf16>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[D]], %[[R]]
// CHECK-NEXT: %[[G:.*]] = graph.gelu tanh %[[S]]
// CHECK-NEXT: graph.yield %[[G]], %[[S]]
// CHECK: graph.return %[[F]]#1, %[[F]]#0
// KERNELS: epilogue = "bias_gelu_kept"
// KERNELS-SAME: [#plan.arg<read, tensor<3x5xbf16>>, #plan.arg<read, tensor<5x2x4xbf16>>, #plan.arg<read, tensor<2x4xbf16>>, #plan.arg<write, tensor<3x2x4xbf16>>, #plan.arg<write, tensor<3x2x4xbf16>>, #plan.arg<write, tensor<4194560xui8>>]
module @kept attributes {plan.target = #plan.target<device = "cuda", arch = "nvptx64", cpu = "sm_90a", threads = 1>} {
  graph.func @f(%x: tensor<3x5xbf16> {graph.name = "x"}, %w: tensor<5x2x4xbf16> {graph.name = "w"}, %b: tensor<2x4xf32> {graph.name = "b"})
      -> (tensor<3x2x4xbf16> {graph.name = "y"}, tensor<3x2x4xbf16> {graph.name = "z"}) {
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xbf16>, tensor<5x2x4xbf16>) -> tensor<3x2x4xbf16>
    %rows = graph.broadcast %b dims [1, 2] : (tensor<2x4xf32>) -> tensor<3x2x4xf32>
    %rounded = arith.truncf %rows : tensor<3x2x4xf32> to tensor<3x2x4xbf16>
    %1 = arith.addf %0, %rounded : tensor<3x2x4xbf16>
    %2 = graph.gelu tanh %1 : tensor<3x2x4xbf16>
    graph.return %1, %2 : tensor<3x2x4xbf16>, tensor<3x2x4xbf16>
  }
  graph.entry @run [@f] repeat [1]
}

// -----

// Without its input as a result GELU takes rows of any size.
// REMARK: 'gelu'
// REMARK: 'bias_gelu'
// CHECK-LABEL: module @forward
// CHECK: epilogue "gelu" :
// CHECK: epilogue "bias_gelu" :
// KERNELS: epilogue = "gelu"
// KERNELS: epilogue = "bias_gelu"
module @forward attributes {plan.target = #plan.target<device = "cuda", arch = "nvptx64", cpu = "sm_90a", threads = 1>} {
  graph.func @f(%x: tensor<3x5xbf16> {graph.name = "x"}, %w: tensor<5x7xbf16> {graph.name = "w"}, %b: tensor<7xbf16> {graph.name = "b"})
      -> (tensor<3x7xbf16> {graph.name = "y"}, tensor<3x7xbf16> {graph.name = "z"}) {
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xbf16>, tensor<5x7xbf16>) -> tensor<3x7xbf16>
    %1 = graph.gelu tanh %0 : tensor<3x7xbf16>
    %2 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xbf16>, tensor<5x7xbf16>) -> tensor<3x7xbf16>
    %rows = graph.broadcast %b dims [1] : (tensor<7xbf16>) -> tensor<3x7xbf16>
    %3 = arith.addf %2, %rows : tensor<3x7xbf16>
    %4 = graph.gelu tanh %3 : tensor<3x7xbf16>
    graph.return %1, %4 : tensor<3x7xbf16>, tensor<3x7xbf16>
  }
  graph.entry @run [@f] repeat [1]
}

// -----

// The gradient of GELU is recognised by what it is, with the operands of sums and products in any order; one with
// another constant is something else.
// REMARK: 'gelu_gradient'
// CHECK-LABEL: module @gradient
// CHECK: %[[F:.*]] = graph.fusion(%{{.*}}, %{{.*}}, %{{.*}}) epilogue "gelu_gradient" : (tensor<3x5xbf16>, tensor<5x8xbf16>, tensor<3x8xbf16>) -> tensor<3x8xbf16>
// CHECK: graph.func @other
// CHECK-NOT: epilogue
// KERNELS: epilogue = "gelu_gradient"
// KERNELS-SAME: [#plan.arg<read, tensor<3x5xbf16>>, #plan.arg<read, tensor<5x8xbf16>>, #plan.arg<read, tensor<3x8xbf16>>, #plan.arg<write, tensor<3x8xbf16>>, #plan.arg<write, tensor<4194560xui8>>]
module @gradient attributes {plan.target = #plan.target<device = "cuda", arch = "nvptx64", cpu = "sm_90a", threads = 1>} {
  graph.func @f(%x: tensor<3x5xbf16> {graph.name = "x"}, %w: tensor<5x8xbf16> {graph.name = "w"}, %in: tensor<3x8xbf16> {graph.name = "in"})
      -> (tensor<3x8xbf16> {graph.name = "y"}) {
    %scale = arith.constant dense<0.797884583> : tensor<3x8xf32>
    %cubic = arith.constant dense<4.471500e-02> : tensor<3x8xf32>
    %one = arith.constant dense<1.0> : tensor<3x8xf32>
    %cubic3 = arith.constant dense<1.341450e-01> : tensor<3x8xf32>
    %half = arith.constant dense<0.5> : tensor<3x8xf32>
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xbf16>, tensor<5x8xbf16>) -> tensor<3x8xf32>
    %1 = arith.extf %in : tensor<3x8xbf16> to tensor<3x8xf32>
    %2 = arith.mulf %1, %1 : tensor<3x8xf32>
    %3 = arith.mulf %scale, %1 : tensor<3x8xf32>
    %4 = arith.mulf %2, %cubic : tensor<3x8xf32>
    %5 = arith.addf %one, %4 : tensor<3x8xf32>
    %6 = arith.mulf %3, %5 : tensor<3x8xf32>
    %7 = math.tanh %6 : tensor<3x8xf32>
    %8 = arith.mulf %cubic3, %2 : tensor<3x8xf32>
    %9 = arith.addf %8, %one : tensor<3x8xf32>
    %10 = arith.mulf %9, %scale : tensor<3x8xf32>
    %11 = arith.mulf %7, %7 : tensor<3x8xf32>
    %12 = arith.subf %one, %11 : tensor<3x8xf32>
    %13 = arith.addf %7, %one : tensor<3x8xf32>
    %14 = arith.mulf %10, %12 : tensor<3x8xf32>
    %15 = arith.mulf %1, %14 : tensor<3x8xf32>
    %16 = arith.addf %13, %15 : tensor<3x8xf32>
    %17 = arith.mulf %half, %16 : tensor<3x8xf32>
    %18 = arith.mulf %17, %0 : tensor<3x8xf32>
    %19 = arith.truncf %18 : tensor<3x8xf32> to tensor<3x8xbf16>
    graph.return %19 : tensor<3x8xbf16>
  }
  graph.entry @run [@f] repeat [1]
  graph.func @other(%x: tensor<3x5xbf16>, %w: tensor<5x8xbf16>, %in: tensor<3x8xbf16>) -> tensor<3x8xbf16> {
    %half = arith.constant dense<0.5> : tensor<3x8xf32>
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x5xbf16>, tensor<5x8xbf16>) -> tensor<3x8xf32>
    %1 = arith.extf %in : tensor<3x8xbf16> to tensor<3x8xf32>
    %2 = math.tanh %1 : tensor<3x8xf32>
    %3 = arith.mulf %half, %2 : tensor<3x8xf32>
    %4 = arith.mulf %3, %0 : tensor<3x8xf32>
    %5 = arith.truncf %4 : tensor<3x8xf32> to tensor<3x8xbf16>
    graph.return %5 : tensor<3x8xbf16>
  }
}
