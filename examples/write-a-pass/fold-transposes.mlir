// RUN: bowline-opt %s --load-pass-plugin=%plugin --pass-pipeline="builtin.module(fold-transposes)" | FileCheck %s

// The pass changes no bit: the same sums, of the same products.
// RUN: bowline-opt %s --interpret=projection --interpret-inputs=random:7 > %t.before
// RUN: bowline-opt %s --load-pass-plugin=%plugin --pass-pipeline="builtin.module(fold-transposes)" --interpret=projection --interpret-inputs=random:7 > %t.after
// RUN: cmp %t.before %t.after

// CHECK-LABEL: graph.func @projection
// CHECK-NOT: graph.transpose
// CHECK: graph.dot_general %{{.*}}, %{{.*}} batch [1] x [0] contract [0] x [2] :
// CHECK-SAME: (tensor<5x3x7xf32>, tensor<3x2x5xf32>) -> tensor<3x7x2xf32>
graph.func @projection(%x: tensor<5x3x7xf32>, %w: tensor<3x2x5xf32>) -> tensor<3x7x2xf32> {
  %xt = graph.transpose %x perm [1, 2, 0] : (tensor<5x3x7xf32>) -> tensor<3x7x5xf32>
  %wt = graph.transpose %w perm [0, 2, 1] : (tensor<3x2x5xf32>) -> tensor<3x5x2xf32>
  %y = graph.dot_general %xt, %wt batch [0] x [0] contract [2] x [1] : (tensor<3x7x5xf32>, tensor<3x5x2xf32>) -> tensor<3x7x2xf32>
  graph.return %y : tensor<3x7x2xf32>
}

// Both free dimensions of the left side change places, and with them the result's: this transpose must stay.
// CHECK-LABEL: graph.func @free_dimensions_swap
// CHECK: graph.transpose
graph.func @free_dimensions_swap(%x: tensor<2x3x5xf32>, %w: tensor<5x7xf32>) -> tensor<3x2x7xf32> {
  %xt = graph.transpose %x perm [1, 0, 2] : (tensor<2x3x5xf32>) -> tensor<3x2x5xf32>
  %y = graph.dot_general %xt, %w contract [2] x [0] : (tensor<3x2x5xf32>, tensor<5x7xf32>) -> tensor<3x2x7xf32>
  graph.return %y : tensor<3x2x7xf32>
}
