// What tiling and repetition did is said once for each.
// RUN: bowline-opt %s --tile-loss="tile-bytes=1048576 min-positions=1" --repeat-activations --remark-format=emitRemark \
// RUN:   --remarks-filter=fusion -o /dev/null 2>&1 | FileCheck %s
// One tile is nothing to speak of.
// RUN: bowline-opt %s --tile-loss --remark-format=emitRemark --remarks-filter=fusion -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ONE --allow-empty

// 1000 positions of 1024 classes: 256 positions per MiB, 4 tiles of 250.
// CHECK: remark: [Passed] TileLoss | Category:fusion | Remark="the loss is computed in 4 tiles of 250 positions: 1.0 MiB of logits instead of 3.9 MiB"
// CHECK-NOT: TileLoss
// CHECK: remark: [Passed] RepeatActivations | Category:fusion | Remark="computed again for 2 later reader(s) instead of being kept"
// CHECK-NOT: RepeatActivations
// ONE-NOT: remark
graph.func loss @loss(%x: tensor<1000x3xf32>, %w: tensor<1024x3xf32>, %l: tensor<1000xi32>) -> tensor<1000xf32> {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<1000x3xf32>, tensor<1024x3xf32>) -> tensor<1000x1024xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<1000x1024xf32>, tensor<1000xi32>) -> (tensor<1000xf32>, tensor<1000xf32>)
  graph.return %loss : tensor<1000xf32>
}
graph.func @activation(%x: tensor<3x3xf32>, %w: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %a = graph.silu %x : tensor<3x3xf32>
  %0 = graph.dot_general %a, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = graph.dot_general %0, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = graph.dot_general %1, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = arith.mulf %2, %a : tensor<3x3xf32>
  %4 = graph.dot_general %3, %w contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %5 = arith.mulf %4, %a : tensor<3x3xf32>
  %6 = graph.dot_general %5, %x contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  graph.return %5, %6 : tensor<3x3xf32>, tensor<3x3xf32>
}
