// The logits of a few positions at a time.
// RUN: bowline-opt %s --tile-loss="tile-bytes=80 min-positions=1" --split-input-file | FileCheck %s
// RUN: bowline-opt %s --tile-loss="tile-bytes=80 min-positions=100" --split-input-file | FileCheck %s --check-prefix=ONE
// RUN: bowline-opt %s --tile-loss="tile-bytes=0 min-positions=0" --split-input-file | FileCheck %s --check-prefix=EACH

// 11 positions of 7 classes in f32: two fit into 80 bytes, which takes 6 tiles, the last one of one position. Gradient
// and products follow the loss of their tile, and the weight's gradient grows in order.
// CHECK-LABEL: graph.func @training
// CHECK-SAME: %[[X:.*]]: tensor<11x3xf32>, %[[W:.*]]: tensor<7x3xf32>, %[[L:.*]]: tensor<11xi32>, %[[S:.*]]: tensor<11xf32>
// CHECK-NOT: tensor<11x7xf32>
// CHECK: %[[X0:.*]] = graph.slice %[[X]] at [0, 0] sizes [2, 3]
// CHECK-NEXT: %[[Y0:.*]] = graph.dot_general %[[X0]], %[[W]] contract [1] x [1] : {{.*}} -> tensor<2x7xf32>
// CHECK-NEXT: %[[L0:.*]] = graph.slice %[[L]] at [0] sizes [2]
// CHECK-NEXT: %[[LOSS0:.*]], %[[LSE0:.*]] = graph.softmax_cross_entropy %[[Y0]], %[[L0]]
// CHECK-NEXT: %[[S0:.*]] = graph.slice %[[S]] at [0] sizes [2]
// CHECK-NEXT: %[[G0:.*]] = graph.softmax_cross_entropy_grad %[[Y0]], %[[L0]], %[[LSE0]], %[[S0]]
// CHECK-NEXT: %[[DX0:.*]] = graph.dot_general %[[G0]], %[[W]] contract [1] x [0] : {{.*}} -> tensor<2x3xf32>
// CHECK-NEXT: %[[XX0:.*]] = graph.slice %[[X]] at [0, 0] sizes [2, 3]
// CHECK-NEXT: %[[DW0:.*]] = graph.dot_general %[[G0]], %[[XX0]] contract [0] x [0] : {{.*}} -> tensor<7x3xf32>
// CHECK: graph.slice %[[X]] at [2, 0] sizes [2, 3]
// CHECK: %[[LOSS1:.*]], %{{.*}} = graph.softmax_cross_entropy
// CHECK: %[[G1:.*]] = graph.softmax_cross_entropy_grad
// CHECK: %[[DW1:.*]] = graph.dot_general %[[G1]], %{{.*}} contract [0] x [0]
// CHECK: %[[SUM1:.*]] = arith.addf %[[DW0]], %[[DW1]] : tensor<7x3xf32>
// CHECK-COUNT-3: graph.softmax_cross_entropy_grad
// CHECK: %[[X5:.*]] = graph.slice %[[X]] at [10, 0] sizes [1, 3]
// CHECK: graph.dot_general %[[X5]], %[[W]] {{.*}} -> tensor<1x7xf32>
// CHECK: %[[LOSS5:.*]], %{{.*}} = graph.softmax_cross_entropy
// CHECK: %[[DX5:.*]] = graph.dot_general %{{.*}}, %[[W]] contract [1] x [0] : {{.*}} -> tensor<1x3xf32>
// CHECK: %[[DW:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<7x3xf32>
// CHECK-NOT: softmax_cross_entropy
// CHECK-DAG: %[[LOSS:.*]] = graph.concat %[[LOSS0]], %[[LOSS1]], {{.*}}, %[[LOSS5]] dim 0 : {{.*}} -> tensor<11xf32>
// CHECK-DAG: %[[DX:.*]] = graph.concat %[[DX0]], {{.*}}, %[[DX5]] dim 0 : {{.*}} -> tensor<11x3xf32>
// CHECK: graph.return %[[LOSS]], %[[DX]], %[[DW]]

// One tile: loss and gradient side by side, nothing is cut.
// ONE-LABEL: graph.func @training
// ONE-NOT: graph.slice
// ONE-NOT: graph.concat
// ONE: %[[Y:.*]] = graph.dot_general %{{.*}} -> tensor<11x7xf32>
// ONE-NEXT: %{{.*}}, %[[LSE:.*]] = graph.softmax_cross_entropy %[[Y]]
// ONE-NEXT: graph.softmax_cross_entropy_grad %[[Y]], %{{.*}}, %[[LSE]]
// ONE-NOT: arith.addf
// ONE: graph.return

// A tile has at least one position.
// EACH-LABEL: graph.func @training
// EACH-COUNT-11: graph.softmax_cross_entropy_grad {{.*}} -> tensor<1x7xf32>
// EACH-NOT: softmax_cross_entropy
// EACH: graph.return
graph.func @training(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %l: tensor<11xi32>, %s: tensor<11xf32>)
    -> (tensor<11xf32>, tensor<11x3xf32>, tensor<7x3xf32>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %between = math.tanh %x : tensor<11x3xf32>
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<11x7xf32>, tensor<11xi32>, tensor<11xf32>, tensor<11xf32>) -> tensor<11x7xf32>
  %dx = graph.dot_general %g, %w contract [1] x [0] : (tensor<11x7xf32>, tensor<7x3xf32>) -> tensor<11x3xf32>
  %dw = graph.dot_general %g, %x contract [0] x [0] : (tensor<11x7xf32>, tensor<11x3xf32>) -> tensor<7x3xf32>
  graph.return %loss, %dx, %dw : tensor<11xf32>, tensor<11x3xf32>, tensor<7x3xf32>
}

// -----

// Batch and sequence become one dimension; the gradient of a [3, 7] weight has the positions of the other side first.
// CHECK-LABEL: graph.func @batches
// CHECK-SAME: %[[X:.*]]: tensor<2x3x3xf32>, %[[W:.*]]: tensor<3x7xf32>
// CHECK: %[[FLAT:.*]] = graph.reshape %[[X]] : (tensor<2x3x3xf32>) -> tensor<6x3xf32>
// CHECK-NEXT: %[[X0:.*]] = graph.slice %[[FLAT]] at [0, 0] sizes [2, 3]
// CHECK-NEXT: graph.dot_general %[[X0]], %[[W]] contract [1] x [0] : {{.*}} -> tensor<2x7xf32>
// CHECK: %[[G0:.*]] = graph.softmax_cross_entropy_grad
// CHECK-NEXT: graph.dot_general %[[G0]], %[[W]] contract [1] x [1] : {{.*}} -> tensor<2x3xf32>
// CHECK-NEXT: %[[XX0:.*]] = graph.slice %[[FLAT]] at [0, 0] sizes [2, 3]
// CHECK-NEXT: graph.dot_general %[[XX0]], %[[G0]] contract [0] x [0] : {{.*}} -> tensor<3x7xf32>
// CHECK-COUNT-2: graph.softmax_cross_entropy_grad
// CHECK-NOT: softmax_cross_entropy
// CHECK: graph.concat {{.*}} -> tensor<6xf32>
// CHECK-NEXT: graph.reshape {{.*}} -> tensor<2x3xf32>
// CHECK: graph.concat {{.*}} -> tensor<6xf32>
// CHECK-NEXT: graph.reshape {{.*}} -> tensor<2x3xf32>
// CHECK: graph.concat {{.*}} -> tensor<6x3xf32>
// CHECK-NEXT: graph.reshape {{.*}} -> tensor<2x3x3xf32>
// CHECK: graph.return
graph.func @batches(%x: tensor<2x3x3xf32>, %w: tensor<3x7xf32>, %l: tensor<2x3xi32>, %s: tensor<2x3xf32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x3xf32>, tensor<3x7xf32>) {
  %y = graph.dot_general %x, %w contract [2] x [0] : (tensor<2x3x3xf32>, tensor<3x7xf32>) -> tensor<2x3x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<2x3x7xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<2x3x7xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3x7xf32>
  %dx = graph.dot_general %g, %w contract [2] x [1] : (tensor<2x3x7xf32>, tensor<3x7xf32>) -> tensor<2x3x3xf32>
  %dw = graph.dot_general %x, %g contract [0, 1] x [0, 1] : (tensor<2x3x3xf32>, tensor<2x3x7xf32>) -> tensor<3x7xf32>
  graph.return %loss, %lse, %dx, %dw : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x3xf32>, tensor<3x7xf32>
}

// -----

// In bf16 the tiles of the weight's gradient are added in f32 and rounded once; logits keep the type they had.
// CHECK-LABEL: graph.func @half
// CHECK: graph.dot_general {{.*}} : (tensor<4x3xbf16>, tensor<7x3xbf16>) -> tensor<4x7xbf16>
// CHECK: graph.dot_general {{.*}} contract [1] x [0] : {{.*}} -> tensor<4x3xbf16>
// CHECK: %[[A:.*]] = graph.dot_general {{.*}} contract [0] x [0] : (tensor<4x7xbf16>, tensor<4x3xbf16>) -> tensor<7x3xf32>
// CHECK: %[[B:.*]] = graph.dot_general {{.*}} contract [0] x [0] : (tensor<4x7xbf16>, tensor<4x3xbf16>) -> tensor<7x3xf32>
// CHECK: %[[AB:.*]] = arith.addf %[[A]], %[[B]] : tensor<7x3xf32>
// CHECK: %[[C:.*]] = graph.dot_general {{.*}} contract [0] x [0] : (tensor<3x7xbf16>, tensor<3x3xbf16>) -> tensor<7x3xf32>
// CHECK: %[[ABC:.*]] = arith.addf %[[AB]], %[[C]] : tensor<7x3xf32>
// CHECK: arith.truncf %[[ABC]] : tensor<7x3xf32> to tensor<7x3xbf16>
// CHECK: graph.return
graph.func @half(%x: tensor<11x3xbf16>, %w: tensor<7x3xbf16>, %l: tensor<11xi32>, %s: tensor<11xf32>)
    -> (tensor<11xf32>, tensor<11x3xbf16>, tensor<7x3xbf16>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xbf16>, tensor<7x3xbf16>) -> tensor<11x7xbf16>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xbf16>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<11x7xbf16>, tensor<11xi32>, tensor<11xf32>, tensor<11xf32>) -> tensor<11x7xbf16>
  %dx = graph.dot_general %g, %w contract [1] x [0] : (tensor<11x7xbf16>, tensor<7x3xbf16>) -> tensor<11x3xbf16>
  %dw = graph.dot_general %g, %x contract [0] x [0] : (tensor<11x7xbf16>, tensor<11x3xbf16>) -> tensor<7x3xbf16>
  graph.return %loss, %dx, %dw : tensor<11xf32>, tensor<11x3xbf16>, tensor<7x3xbf16>
}

// -----

// A gradient that is kept in f32 is not rounded at all, and neither are logits in f32.
// CHECK-LABEL: graph.func @accumulators
// CHECK-COUNT-6: graph.dot_general {{.*}} : (tensor<{{[12]}}x3xbf16>, tensor<7x3xbf16>) -> tensor<{{[12]}}x7xf32>
// CHECK-NOT: arith.truncf
// CHECK-LABEL: graph.func @accumulated_gradient
// CHECK: arith.addf {{.*}} : tensor<7x3xf32>
// CHECK-NOT: arith.truncf
// CHECK: graph.return
graph.func @accumulators(%x: tensor<11x3xbf16>, %w: tensor<7x3xbf16>, %l: tensor<11xi32>) -> tensor<11xf32> {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xbf16>, tensor<7x3xbf16>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  graph.return %loss : tensor<11xf32>
}
graph.func @accumulated_gradient(%x: tensor<11x3xbf16>, %w: tensor<7x3xbf16>, %l: tensor<11xi32>, %s: tensor<11xf32>)
    -> (tensor<11xf32>, tensor<7x3xf32>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xbf16>, tensor<7x3xbf16>) -> tensor<11x7xbf16>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xbf16>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<11x7xbf16>, tensor<11xi32>, tensor<11xf32>, tensor<11xf32>) -> tensor<11x7xbf16>
  %dw = graph.dot_general %g, %x contract [0] x [0] : (tensor<11x7xbf16>, tensor<11x3xbf16>) -> tensor<7x3xf32>
  graph.return %loss, %dw : tensor<11xf32>, tensor<7x3xf32>
}

// -----

// Constants that the gradient reads may stand behind the loss: they move.
// CHECK-LABEL: graph.func @constants
// CHECK-DAG: %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<11xf32>
// CHECK-DAG: %[[M:.*]] = arith.constant dense<5.000000e-01> : tensor<7x2xf32>
// CHECK: graph.slice %[[ONES]] at [0] sizes [2]
// CHECK: graph.dot_general %{{.*}}, %[[M]] contract [1] x [0] : {{.*}} -> tensor<2x2xf32>
// CHECK: graph.concat {{.*}} -> tensor<11x2xf32>
graph.func @constants(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %l: tensor<11xi32>) -> (tensor<11xf32>, tensor<11x2xf32>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %ones = arith.constant dense<1.0> : tensor<11xf32>
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %ones
    : (tensor<11x7xf32>, tensor<11xi32>, tensor<11xf32>, tensor<11xf32>) -> tensor<11x7xf32>
  %m = arith.constant dense<0.5> : tensor<7x2xf32>
  %p = graph.dot_general %g, %m contract [1] x [0] : (tensor<11x7xf32>, tensor<7x2xf32>) -> tensor<11x2xf32>
  graph.return %loss, %p : tensor<11xf32>, tensor<11x2xf32>
}

// -----

// One position without a dimension is a tile.
// CHECK-LABEL: graph.func @single
// CHECK: %[[X:.*]] = graph.reshape %{{.*}} : (tensor<3xf32>) -> tensor<1x3xf32>
// CHECK: graph.dot_general %[[X]], %{{.*}} contract [1] x [1] : {{.*}} -> tensor<1x7xf32>
// CHECK: graph.reshape {{.*}} : (tensor<1xf32>) -> tensor<f32>
// CHECK: graph.return
graph.func @single(%x: tensor<3xf32>, %w: tensor<7x3xf32>, %l: tensor<i32>, %s: tensor<f32>)
    -> (tensor<f32>, tensor<3xf32>, tensor<7x3xf32>) {
  %y = graph.dot_general %x, %w contract [0] x [1] : (tensor<3xf32>, tensor<7x3xf32>) -> tensor<7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<7xf32>, tensor<i32>) -> (tensor<f32>, tensor<f32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s : (tensor<7xf32>, tensor<i32>, tensor<f32>, tensor<f32>) -> tensor<7xf32>
  %dx = graph.dot_general %g, %w contract [0] x [0] : (tensor<7xf32>, tensor<7x3xf32>) -> tensor<3xf32>
  %dw = graph.dot_general %g, %x contract [] x [] : (tensor<7xf32>, tensor<3xf32>) -> tensor<7x3xf32>
  graph.return %loss, %dx, %dw : tensor<f32>, tensor<3xf32>, tensor<7x3xf32>
}

// -----

// What is left alone. Something else reads the logits:
// CHECK-LABEL: graph.func @other_reader
// CHECK: graph.dot_general {{.*}} -> tensor<11x7xf32>
// CHECK-NEXT: graph.softmax_cross_entropy
// CHECK-NEXT: graph.reduce max
// CHECK-NEXT: graph.return
graph.func @other_reader(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %l: tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %m = graph.reduce max %y dims [1] : (tensor<11x7xf32>) -> tensor<11xf32>
  graph.return %loss, %m : tensor<11xf32>, tensor<11xf32>
}

// The caller gets the logits:
// CHECK-LABEL: graph.func @returned
// CHECK: graph.dot_general {{.*}} -> tensor<11x7xf32>
// CHECK-NEXT: graph.softmax_cross_entropy
// CHECK-NEXT: graph.return
graph.func @returned(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %l: tensor<11xi32>) -> (tensor<11xf32>, tensor<11x7xf32>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  graph.return %loss, %y : tensor<11xf32>, tensor<11x7xf32>
}

// Two losses read them:
// CHECK-LABEL: graph.func @two_losses
// CHECK: graph.dot_general {{.*}} -> tensor<11x7xf32>
// CHECK-COUNT-2: graph.softmax_cross_entropy {{.*}}tensor<11x7xf32>
// CHECK-NOT: softmax_cross_entropy
graph.func @two_losses(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %l: tensor<11xi32>, %m: tensor<11xi32>)
    -> (tensor<11xf32>, tensor<11xf32>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %a, %0 = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %b, %1 = graph.softmax_cross_entropy %y, %m : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  graph.return %a, %b : tensor<11xf32>, tensor<11xf32>
}

// The gradient needs what is computed from the loss:
// CHECK-LABEL: graph.func @gradient_of_later_value
// CHECK: graph.dot_general {{.*}} -> tensor<11x7xf32>
// CHECK: graph.softmax_cross_entropy_grad {{.*}} -> tensor<11x7xf32>
// CHECK-NOT: softmax_cross_entropy
graph.func @gradient_of_later_value(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %l: tensor<11xi32>) -> tensor<11x3xf32> {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %s = math.exp %loss : tensor<11xf32>
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<11x7xf32>, tensor<11xi32>, tensor<11xf32>, tensor<11xf32>) -> tensor<11x7xf32>
  %dx = graph.dot_general %g, %w contract [1] x [0] : (tensor<11x7xf32>, tensor<7x3xf32>) -> tensor<11x3xf32>
  graph.return %dx : tensor<11x3xf32>
}

// A product's other side is computed behind the loss:
// CHECK-LABEL: graph.func @product_of_later_value
// CHECK: graph.softmax_cross_entropy_grad {{.*}} -> tensor<11x7xf32>
// CHECK-NOT: softmax_cross_entropy
graph.func @product_of_later_value(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %l: tensor<11xi32>, %s: tensor<11xf32>)
    -> (tensor<11xf32>, tensor<11x3xf32>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<11x7xf32>, tensor<11xi32>, tensor<11xf32>, tensor<11xf32>) -> tensor<11x7xf32>
  %v = math.tanh %w : tensor<7x3xf32>
  %dx = graph.dot_general %g, %v contract [1] x [0] : (tensor<11x7xf32>, tensor<7x3xf32>) -> tensor<11x3xf32>
  graph.return %loss, %dx : tensor<11xf32>, tensor<11x3xf32>
}

// The gradient of a bias sums the gradient of the logits, which has to be there as a whole:
// CHECK-LABEL: graph.func @gradient_reduced
// CHECK: graph.softmax_cross_entropy_grad {{.*}} -> tensor<11x7xf32>
// CHECK-NEXT: graph.reduce sum
graph.func @gradient_reduced(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %l: tensor<11xi32>, %s: tensor<11xf32>)
    -> (tensor<11xf32>, tensor<7xf32>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<11x7xf32>, tensor<11xi32>, tensor<11xf32>, tensor<11xf32>) -> tensor<11x7xf32>
  %db = graph.reduce sum %g dims [0] : (tensor<11x7xf32>) -> tensor<7xf32>
  graph.return %loss, %db : tensor<11xf32>, tensor<7xf32>
}

// Other labels than the loss's:
// CHECK-LABEL: graph.func @other_labels
// CHECK: graph.softmax_cross_entropy_grad {{.*}} -> tensor<11x7xf32>
graph.func @other_labels(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %l: tensor<11xi32>, %m: tensor<11xi32>, %s: tensor<11xf32>)
    -> tensor<7x3xf32> {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %m, %lse, %s
    : (tensor<11x7xf32>, tensor<11xi32>, tensor<11xf32>, tensor<11xf32>) -> tensor<11x7xf32>
  %dw = graph.dot_general %g, %x contract [0] x [0] : (tensor<11x7xf32>, tensor<11x3xf32>) -> tensor<7x3xf32>
  graph.return %dw : tensor<7x3xf32>
}

// The gradient is the right side of a product over the classes, whose result has the positions last:
// CHECK-LABEL: graph.func @gradient_on_the_right
// CHECK: graph.softmax_cross_entropy_grad {{.*}} -> tensor<11x7xf32>
// CHECK-NEXT: graph.dot_general %{{.*}}, %{{.*}} contract [0] x [1] : {{.*}} -> tensor<3x11xf32>
graph.func @gradient_on_the_right(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %l: tensor<11xi32>, %s: tensor<11xf32>)
    -> tensor<3x11xf32> {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<11x7xf32>, tensor<11xi32>, tensor<11xf32>, tensor<11xf32>) -> tensor<11x7xf32>
  %dx = graph.dot_general %w, %g contract [0] x [1] : (tensor<7x3xf32>, tensor<11x7xf32>) -> tensor<3x11xf32>
  graph.return %dx : tensor<3x11xf32>
}

// The gradient times itself:
// CHECK-LABEL: graph.func @gradient_squared
// CHECK: graph.softmax_cross_entropy_grad {{.*}} -> tensor<11x7xf32>
graph.func @gradient_squared(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %l: tensor<11xi32>, %s: tensor<11xf32>) -> tensor<7x7xf32> {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<11x7xf32>, tensor<11xi32>, tensor<11xf32>, tensor<11xf32>) -> tensor<11x7xf32>
  %p = graph.dot_general %g, %g contract [0] x [0] : (tensor<11x7xf32>, tensor<11x7xf32>) -> tensor<7x7xf32>
  graph.return %p : tensor<7x7xf32>
}

// A part of the positions is contracted:
// CHECK-LABEL: graph.func @gradient_per_batch
// CHECK: graph.softmax_cross_entropy_grad {{.*}} -> tensor<2x6x7xf32>
graph.func @gradient_per_batch(%x: tensor<2x6x3xf32>, %w: tensor<7x3xf32>, %l: tensor<2x6xi32>, %s: tensor<2x6xf32>)
    -> tensor<2x7x3xf32> {
  %y = graph.dot_general %x, %w contract [2] x [1] : (tensor<2x6x3xf32>, tensor<7x3xf32>) -> tensor<2x6x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<2x6x7xf32>, tensor<2x6xi32>) -> (tensor<2x6xf32>, tensor<2x6xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<2x6x7xf32>, tensor<2x6xi32>, tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6x7xf32>
  %p = graph.dot_general %g, %x batch [0] x [0] contract [1] x [1] : (tensor<2x6x7xf32>, tensor<2x6x3xf32>) -> tensor<2x7x3xf32>
  graph.return %p : tensor<2x7x3xf32>
}

// The weight is the left side, so that the classes are no longer the free dimension of the right one:
// CHECK-LABEL: graph.func @classes_on_the_left
// CHECK: graph.dot_general {{.*}} -> tensor<11x7xf32>
// CHECK-NEXT: graph.softmax_cross_entropy
graph.func @classes_on_the_left(%x: tensor<7x3xf32>, %w: tensor<3x11xf32>, %l: tensor<11xi32>) -> tensor<11xf32> {
  %y = graph.dot_general %w, %x contract [0] x [1] : (tensor<3x11xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  graph.return %loss : tensor<11xf32>
}

// What treats a class alike at all positions between product and loss is done for each tile: a bias, and the mask of
// classes that are padding.
// CHECK-LABEL: graph.func @bias
// CHECK: %[[P:.*]] = graph.dot_general {{.*}} -> tensor<2x7xf32>
// CHECK: %[[B:.*]] = graph.broadcast %{{.*}} dims [1] : (tensor<7xf32>) -> tensor<2x7xf32>
// CHECK: %[[Y:.*]] = arith.addf %[[P]], %[[B]] : tensor<2x7xf32>
// CHECK: graph.softmax_cross_entropy %[[Y]]
// CHECK-NOT: tensor<11x7xf32>
// CHECK: graph.return
graph.func @bias(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %b: tensor<7xf32>, %l: tensor<11xi32>) -> tensor<11xf32> {
  %p = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %rows = graph.broadcast %b dims [1] : (tensor<7xf32>) -> tensor<11x7xf32>
  %y = arith.addf %p, %rows : tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  graph.return %loss : tensor<11xf32>
}

// Something of its own at each position is not:
// CHECK-LABEL: graph.func @temperature
// CHECK: graph.softmax_cross_entropy {{.*}}tensor<11x7xf32>
graph.func @temperature(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %b: tensor<11xf32>, %l: tensor<11xi32>) -> tensor<11xf32> {
  %p = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %columns = graph.broadcast %b dims [0] : (tensor<11xf32>) -> tensor<11x7xf32>
  %y = arith.mulf %p, %columns : tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  graph.return %loss : tensor<11xf32>
}

// Nor are logits that something else reads too:
// CHECK-LABEL: graph.func @read_twice
// CHECK: graph.softmax_cross_entropy {{.*}}tensor<11x7xf32>
graph.func @read_twice(%x: tensor<11x3xf32>, %w: tensor<7x3xf32>, %b: tensor<7xf32>, %l: tensor<11xi32>) -> (tensor<11xf32>, tensor<11x7xf32>) {
  %p = graph.dot_general %x, %w contract [1] x [1] : (tensor<11x3xf32>, tensor<7x3xf32>) -> tensor<11x7xf32>
  %rows = graph.broadcast %b dims [1] : (tensor<7xf32>) -> tensor<11x7xf32>
  %y = arith.addf %p, %rows : tensor<11x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<11x7xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  graph.return %loss, %p : tensor<11xf32>, tensor<11x7xf32>
}
