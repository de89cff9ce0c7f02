// Rows of matrices begin at multiples of 16 bytes.
// RUN: bowline-opt %s --align-products="min-size=2 multiple=8" --split-input-file | FileCheck %s
// RUN: bowline-opt %s --align-products="min-size=2 multiple=4" --split-input-file | FileCheck %s --check-prefix=FOUR
// RUN: bowline-opt %s --align-products="min-size=2 row-bytes=4" --split-input-file | FileCheck %s --check-prefix=NARROW
// RUN: bowline-opt %s --align-products --split-input-file | FileCheck %s --check-prefix=SMALL

// RUN: not bowline-opt %s --align-products="multiple=0" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not bowline-opt %s --align-products="row-bytes=0" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: align-products: row-bytes and multiple must be at least 1

// Of 5 f32 a row has 20 bytes. What is contracted grows in both operands, and the result stays.
// CHECK-LABEL: graph.func @contracted
// CHECK-SAME: %[[X:.*]]: tensor<4x5xf32>, %[[W:.*]]: tensor<8x5xf32>
// CHECK-DAG: %[[XP:.*]] = graph.pad %[[X]] low [0, 0] high [0, 3] : (tensor<4x5xf32>) -> tensor<4x8xf32>
// CHECK-DAG: %[[WP:.*]] = graph.pad %[[W]] low [0, 0] high [0, 3] : (tensor<8x5xf32>) -> tensor<8x8xf32>
// CHECK: %[[Y:.*]] = graph.dot_general %[[XP]], %[[WP]] contract [1] x [1] : {{.*}} -> tensor<4x8xf32>
// CHECK-NOT: graph.slice
// CHECK: graph.return %[[Y]]
// FOUR-LABEL: graph.func @contracted
// FOUR-COUNT-2: graph.pad {{.*}} high [0, 3]
// Rows of 20 bytes are multiples of 4, and by default rows as short as these stay.
// NARROW-LABEL: graph.func @contracted
// NARROW-NOT: graph.pad
// NARROW: graph.return
// SMALL-LABEL: graph.func @contracted
// SMALL-NOT: graph.pad
// SMALL: graph.return
graph.func @contracted(%x: tensor<4x5xf32>, %w: tensor<8x5xf32>) -> tensor<4x8xf32> {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x5xf32>, tensor<8x5xf32>) -> tensor<4x8xf32>
  graph.return %y : tensor<4x8xf32>
}

// -----

// Rows of the result: the right operand has more rows, and what they add is left out.
// CHECK-LABEL: graph.func @result
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<7x8xf32>
// CHECK: %[[WP:.*]] = graph.pad %[[W]] low [0, 0] high [1, 0] : (tensor<7x8xf32>) -> tensor<8x8xf32>
// CHECK: %[[Y:.*]] = graph.dot_general %[[X]], %[[WP]] contract [1] x [1] : {{.*}} -> tensor<4x8xf32>
// CHECK: %[[S:.*]] = graph.slice %[[Y]] at [0, 0] sizes [4, 7]
// CHECK: graph.return %[[S]]
graph.func @result(%x: tensor<4x8xf32>, %w: tensor<7x8xf32>) -> tensor<4x7xf32> {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x8xf32>, tensor<7x8xf32>) -> tensor<4x7xf32>
  graph.return %y : tensor<4x7xf32>
}

// -----

// The last dimension of the right operand is one of the result: both grow at once. That of the left is free too.
// CHECK-LABEL: graph.func @free
// CHECK-SAME: %[[X:.*]]: tensor<6x5xf32>, %[[W:.*]]: tensor<6x7xf32>
// CHECK-DAG: %[[XP:.*]] = graph.pad %[[X]] low [0, 0] high [0, 3] : (tensor<6x5xf32>) -> tensor<6x8xf32>
// CHECK-DAG: %[[WP:.*]] = graph.pad %[[W]] low [0, 0] high [0, 1] : (tensor<6x7xf32>) -> tensor<6x8xf32>
// CHECK: %[[Y:.*]] = graph.dot_general %[[XP]], %[[WP]] contract [0] x [0] : {{.*}} -> tensor<8x8xf32>
// CHECK: graph.slice %[[Y]] at [0, 0] sizes [5, 7]
graph.func @free(%x: tensor<6x5xf32>, %w: tensor<6x7xf32>) -> tensor<5x7xf32> {
  %y = graph.dot_general %x, %w contract [0] x [0] : (tensor<6x5xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>
  graph.return %y : tensor<5x7xf32>
}

// -----

// Batches stay. bf16 has two bytes, so that 8 are 16 of them, and 12 are not a multiple.
// CHECK-LABEL: graph.func @batches
// CHECK: graph.pad {{.*}} high [0, 0, 4] : (tensor<3x2x12xbf16>) -> tensor<3x2x16xbf16>
// CHECK: graph.pad {{.*}} high [0, 0, 4] : (tensor<3x8x12xbf16>) -> tensor<3x8x16xbf16>
// CHECK: graph.dot_general {{.*}} batch [0] x [0] contract [2] x [2] : {{.*}} -> tensor<3x2x8xf32>
// CHECK-NOT: graph.slice
// CHECK: graph.return
graph.func @batches(%x: tensor<3x2x12xbf16>, %w: tensor<3x8x12xbf16>) -> tensor<3x2x8xf32> {
  %y = graph.dot_general %x, %w batch [0] x [0] contract [2] x [2] : (tensor<3x2x12xbf16>, tensor<3x8x12xbf16>) -> tensor<3x2x8xf32>
  graph.return %y : tensor<3x2x8xf32>
}

// -----

// What fits stays as it is, of any size.
// CHECK-LABEL: graph.func @fits
// CHECK-NOT: graph.pad
// CHECK: graph.return
// SMALL-LABEL: graph.func @fits
// SMALL-NOT: graph.pad
// SMALL: graph.return
graph.func @fits(%x: tensor<3x512xbf16>, %w: tensor<264x512xbf16>) -> tensor<3x264xbf16> {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<3x512xbf16>, tensor<264x512xbf16>) -> tensor<3x264xbf16>
  graph.return %y : tensor<3x264xbf16>
}

// -----

// One value is padded once for all products that read it so.
// CHECK-LABEL: graph.func @shared
// CHECK-SAME: %[[X:.*]]: tensor<4x5xf32>
// CHECK: %[[XP:.*]] = graph.pad %[[X]] low [0, 0] high [0, 3]
// CHECK-NOT: graph.pad %[[X]]
// CHECK: graph.dot_general %[[XP]], %[[XP]]
// CHECK-NOT: graph.pad %[[X]]
// CHECK: graph.dot_general %[[XP]], %
graph.func @shared(%x: tensor<4x5xf32>, %w: tensor<8x5xf32>) -> (tensor<4x4xf32>, tensor<4x8xf32>) {
  %a = graph.dot_general %x, %x contract [1] x [1] : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x4xf32>
  %b = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x5xf32>, tensor<8x5xf32>) -> tensor<4x8xf32>
  graph.return %a, %b : tensor<4x4xf32>, tensor<4x8xf32>
}

// -----

// By default 50,257 classes are 50,304, and loss and gradient work on all of them: the absent ones have logits so low
// that nothing comes of them, and a gradient of zero, which is what the products behind it want to read.
// SMALL-LABEL: graph.func @loss
// SMALL-SAME: %[[X:[a-z0-9]+]]: tensor<4x768xf32>, %[[W:[a-z0-9]+]]: tensor<50257x768xf32>, %[[L:.*]]: tensor<4xi32>, %[[S:.*]]: tensor<4xf32>
// SMALL: %[[WP:.*]] = graph.pad %[[W]] low [0, 0] high [47, 0] : (tensor<50257x768xf32>) -> tensor<50304x768xf32>
// SMALL: %[[Y:.*]] = graph.dot_general %[[X]], %[[WP]] {{.*}} -> tensor<4x50304xf32>
// SMALL-DAG: %[[INDEX:.*]] = graph.broadcast %{{.*}} dims [1] : (tensor<50304xi32>) -> tensor<4x50304xi32>
// SMALL-DAG: %[[END:.*]] = arith.constant dense<50257> : tensor<4x50304xi32>
// SMALL-DAG: %[[LOW:.*]] = arith.constant dense<-{{.*}}> : tensor<4x50304xf32>
// SMALL: %[[IS:.*]] = arith.cmpi slt, %[[INDEX]], %[[END]]
// SMALL: %[[ALL:.*]] = arith.select %[[IS]], %[[Y]], %[[LOW]]
// SMALL: %[[LOSS:.*]], %[[LSE:.*]] = graph.softmax_cross_entropy %[[ALL]], %[[L]]
// SMALL: %[[G:.*]] = graph.softmax_cross_entropy_grad %[[ALL]], %[[L]], %[[LSE]], %[[S]] : {{.*}} -> tensor<4x50304xf32>
// SMALL-NOT: graph.pad %[[G]]
// SMALL: graph.dot_general %[[G]], %[[WP]] contract [1] x [0] : (tensor<4x50304xf32>, tensor<50304x768xf32>) -> tensor<4x768xf32>
// SMALL: %[[DW:.*]] = graph.dot_general %[[G]], %[[X]] contract [0] x [0] : {{.*}} -> tensor<50304x768xf32>
// SMALL: graph.slice %[[DW]] at [0, 0] sizes [50257, 768]
graph.func @loss(%x: tensor<4x768xf32>, %w: tensor<50257x768xf32>, %l: tensor<4xi32>, %s: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4x768xf32>, tensor<50257x768xf32>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x768xf32>, tensor<50257x768xf32>) -> tensor<4x50257xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<4x50257xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<4x50257xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x50257xf32>
  %dx = graph.dot_general %g, %w contract [1] x [0] : (tensor<4x50257xf32>, tensor<50257x768xf32>) -> tensor<4x768xf32>
  %dw = graph.dot_general %g, %x contract [0] x [0] : (tensor<4x50257xf32>, tensor<4x768xf32>) -> tensor<50257x768xf32>
  graph.return %loss, %dx, %dw : tensor<4xf32>, tensor<4x768xf32>, tensor<50257x768xf32>
}

// -----

// The gradient itself is asked for: it has the classes that there are.
// CHECK-LABEL: graph.func @gradient
// CHECK: %[[G:.*]] = graph.softmax_cross_entropy_grad {{.*}} -> tensor<4x8xf32>
// CHECK: %[[OWN:.*]] = graph.slice %[[G]] at [0, 0] sizes [4, 7]
// CHECK: graph.return %[[OWN]]
graph.func @gradient(%x: tensor<4x8xf32>, %w: tensor<7x8xf32>, %l: tensor<4xi32>, %lse: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4x7xf32> {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x8xf32>, tensor<7x8xf32>) -> tensor<4x7xf32>
  %g = graph.softmax_cross_entropy_grad %y, %l, %lse, %s
    : (tensor<4x7xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x7xf32>
  graph.return %g : tensor<4x7xf32>
}

// -----

// Where ranks divide the classes, a label may name the class behind the last: the loss reads what there is.
dist.mesh @mesh ["tp"] [2]
// CHECK-LABEL: graph.func @divided
// CHECK: %[[Y:.*]] = graph.dot_general {{.*}} -> tensor<4x8xf32>
// CHECK: %[[S:.*]] = graph.slice %[[Y]] at [0, 0] sizes [4, 7]
// CHECK: graph.softmax_cross_entropy %[[S]]
graph.func @divided(%x: tensor<4x8xf32>, %w: tensor<7x8xf32>, %l: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = graph.dot_general %x, %w contract [1] x [1] : (tensor<4x8xf32>, tensor<7x8xf32>) -> tensor<4x7xf32>
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<4x7xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  graph.return %loss, %lse : tensor<4xf32>, tensor<4xf32>
}
