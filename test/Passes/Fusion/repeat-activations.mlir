// Activation functions are computed again where the backward pass reads them.
// RUN: bowline-opt %s --repeat-activations --split-input-file | FileCheck %s

// Three contractions lie between: the late reader gets a copy in front of it, the early one does not.
// CHECK-LABEL: graph.func @far
// CHECK: %[[X:.*]] = graph.dot_general
// CHECK-NEXT: %[[A:.*]] = graph.silu %[[X]]
// CHECK-NEXT: graph.dot_general %[[A]]
// CHECK-COUNT-2: graph.dot_general
// CHECK-NEXT: %[[B:.*]] = graph.silu %[[X]]
// CHECK-NEXT: arith.mulf %{{.*}}, %[[B]]
// CHECK-NOT: graph.silu
// CHECK: graph.return
graph.func @far(%p: tensor<3x3xf32>, %w: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %x = graph.dot_general %p, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %a = graph.silu %x : tensor<3x3xf32>
  %0 = graph.dot_general %a, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = graph.dot_general %0, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = graph.dot_general %1, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = arith.mulf %2, %a : tensor<3x3xf32>
  %4 = arith.addf %3, %x : tensor<3x3xf32>
  graph.return %3, %4 : tensor<3x3xf32>, tensor<3x3xf32>
}

// -----

// If nobody else reads the first copy, it goes.
// CHECK-LABEL: graph.func @only_far
// CHECK: %[[X:.*]] = graph.dot_general
// CHECK-COUNT-3: graph.dot_general
// CHECK-NEXT: %[[B:.*]] = graph.silu %[[X]]
// CHECK-NEXT: arith.mulf %{{.*}}, %[[B]]
// CHECK-NOT: graph.silu
// CHECK: graph.return
graph.func @only_far(%p: tensor<3x3xf32>, %w: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %x = graph.dot_general %p, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %a = graph.silu %x : tensor<3x3xf32>
  %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = graph.dot_general %0, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = graph.dot_general %1, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = arith.mulf %2, %a : tensor<3x3xf32>
  %4 = arith.addf %3, %x : tensor<3x3xf32>
  graph.return %4 : tensor<3x3xf32>
}

// -----

// Two contractions in between may be the two products of one gradient: not far enough.
// CHECK-LABEL: graph.func @near
// CHECK-COUNT-1: graph.silu
// CHECK-NOT: graph.silu
// CHECK: graph.return
graph.func @near(%p: tensor<3x3xf32>, %w: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %x = graph.dot_general %p, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %a = graph.silu %x : tensor<3x3xf32>
  %0 = graph.dot_general %a, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = graph.dot_general %0, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = arith.mulf %1, %a : tensor<3x3xf32>
  %3 = arith.addf %2, %x : tensor<3x3xf32>
  graph.return %3 : tensor<3x3xf32>
}

// -----

// Keeping the operand instead of the result saves nothing.
// CHECK-LABEL: graph.func @operand_not_kept
// CHECK-COUNT-1: graph.silu
// CHECK-NOT: graph.silu
// CHECK: graph.return
graph.func @operand_not_kept(%p: tensor<3x3xf32>, %w: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %x = graph.dot_general %p, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %a = graph.silu %x : tensor<3x3xf32>
  %0 = graph.dot_general %a, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = graph.dot_general %0, %x contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = graph.dot_general %1, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = arith.mulf %2, %a : tensor<3x3xf32>
  graph.return %3 : tensor<3x3xf32>
}

// -----

// A contraction, a write and the caller read what is stored; values of two operands and changes of type are kept.
// CHECK-LABEL: graph.func @kept
// CHECK-COUNT-1: graph.silu
// CHECK-COUNT-1: arith.mulf
// CHECK-COUNT-1: arith.truncf
// CHECK-NOT: graph.silu
// CHECK-NOT: arith.mulf
// CHECK-NOT: arith.truncf
// CHECK: graph.return
graph.state @s saved : tensor<3x3xf32> init(#graph.fill<0.0>)
graph.func @kept(%x: tensor<3x3xf32>, %w: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xbf16>, tensor<3x3xf32>) {
  %a = graph.silu %x : tensor<3x3xf32>
  %b = arith.mulf %x, %w : tensor<3x3xf32>
  %c = arith.truncf %x : tensor<3x3xf32> to tensor<3x3xbf16>
  %0 = graph.dot_general %w, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = graph.dot_general %0, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = graph.dot_general %1, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = graph.dot_general %2, %a contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  graph.write @s, %a : tensor<3x3xf32>
  %4 = arith.subf %b, %3 : tensor<3x3xf32>
  %5 = arith.negf %c : tensor<3x3xbf16>
  %6 = arith.addf %4, %x : tensor<3x3xf32>
  graph.return %a, %4, %5, %6 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xbf16>, tensor<3x3xf32>
}
