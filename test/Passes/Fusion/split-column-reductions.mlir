// Sums over rows by blocks of rows.
// RUN: bowline-opt %s --split-column-reductions="max-blocks=4 min-rows=2" --split-input-file | FileCheck %s
// RUN: bowline-opt %s --split-column-reductions="max-blocks=4 min-rows=0" --split-input-file | FileCheck %s --check-prefix=SMALL
// RUN: bowline-opt %s --split-column-reductions --split-input-file | FileCheck %s --check-prefix=DEFAULT

// 12 rows make 4 blocks of 3.
// CHECK-LABEL: graph.func @matrix
// CHECK-SAME: %[[X:.*]]: tensor<12x5xf32>
// CHECK-NEXT: %[[R:.*]] = graph.reshape %[[X]] : (tensor<12x5xf32>) -> tensor<4x3x5xf32>
// CHECK-NEXT: %[[P:.*]] = graph.reduce sum %[[R]] dims [1] : (tensor<4x3x5xf32>) -> tensor<4x5xf32>
// CHECK-NEXT: %[[S:.*]] = graph.reduce sum %[[P]] dims [0] : (tensor<4x5xf32>) -> tensor<5xf32>
// CHECK-NEXT: graph.return %[[S]]
// With the default, 12 rows are one block.
// DEFAULT-LABEL: graph.func @matrix
// DEFAULT-NEXT: graph.reduce sum %{{.*}} dims [0] : (tensor<12x5xf32>) -> tensor<5xf32>
// DEFAULT-NEXT: graph.return
graph.func @matrix(%x: tensor<12x5xf32>) -> tensor<5xf32> {
  %0 = graph.reduce sum %x dims [0] : (tensor<12x5xf32>) -> tensor<5xf32>
  graph.return %0 : tensor<5xf32>
}

// -----

// Batch and sequence are rows alike. 4 does not divide 2 * 9 rows, 3 does.
// CHECK-LABEL: graph.func @batches
// CHECK: graph.reshape %{{.*}} : (tensor<2x9x5xf32>) -> tensor<3x6x5xf32>
// CHECK-NEXT: graph.reduce sum %{{.*}} dims [1] : (tensor<3x6x5xf32>) -> tensor<3x5xf32>
// CHECK-NEXT: graph.reduce sum %{{.*}} dims [0] : (tensor<3x5xf32>) -> tensor<5xf32>
graph.func @batches(%x: tensor<2x9x5xf32>) -> tensor<5xf32> {
  %0 = graph.reduce sum %x dims [0, 1] : (tensor<2x9x5xf32>) -> tensor<5xf32>
  graph.return %0 : tensor<5xf32>
}

// -----

// Sums of blocks of bf16 are f32, and the sum of all is rounded once.
// CHECK-LABEL: graph.func @half
// CHECK: %[[W:.*]] = arith.extf %{{.*}} : tensor<12x5xbf16> to tensor<12x5xf32>
// CHECK-NEXT: %[[R:.*]] = graph.reshape %[[W]] : (tensor<12x5xf32>) -> tensor<4x3x5xf32>
// CHECK-NEXT: graph.reduce sum %[[R]] dims [1]
// CHECK-NEXT: %[[S:.*]] = graph.reduce sum %{{.*}} dims [0] : (tensor<4x5xf32>) -> tensor<5xf32>
// CHECK-NEXT: %[[N:.*]] = arith.truncf %[[S]] : tensor<5xf32> to tensor<5xbf16>
// CHECK-NEXT: graph.return %[[N]]
graph.func @half(%x: tensor<12x5xbf16>) -> tensor<5xbf16> {
  %0 = graph.reduce sum %x dims [0] : (tensor<12x5xbf16>) -> tensor<5xbf16>
  graph.return %0 : tensor<5xbf16>
}

// -----

// f64 stays f64.
// CHECK-LABEL: graph.func @double
// CHECK-NOT: arith.
// CHECK: graph.reduce sum %{{.*}} dims [1] : (tensor<4x3x5xf64>) -> tensor<4x5xf64>
// CHECK-NOT: arith.
graph.func @double(%x: tensor<12x5xf64>) -> tensor<5xf64> {
  %0 = graph.reduce sum %x dims [0] : (tensor<12x5xf64>) -> tensor<5xf64>
  graph.return %0 : tensor<5xf64>
}

// -----

// 13 rows make 4 blocks of 3, and one row is left.
// CHECK-LABEL: graph.func @prime
// CHECK-SAME: %[[X:.*]]: tensor<13x5xf32>
// CHECK-DAG: %[[B:.*]] = graph.slice %[[X]] at [0, 0] sizes [12, 5]
// CHECK-DAG: %[[L:.*]] = graph.slice %[[X]] at [12, 0] sizes [1, 5]
// CHECK-DAG: %[[LS:.*]] = graph.reduce sum %[[L]] dims [0] : (tensor<1x5xf32>) -> tensor<5xf32>
// CHECK-DAG: %[[R:.*]] = graph.reshape %[[B]] : (tensor<12x5xf32>) -> tensor<4x3x5xf32>
// CHECK-DAG: %[[P:.*]] = graph.reduce sum %[[R]] dims [1] : (tensor<4x3x5xf32>) -> tensor<4x5xf32>
// CHECK-DAG: %[[S:.*]] = graph.reduce sum %[[P]] dims [0] : (tensor<4x5xf32>) -> tensor<5xf32>
// CHECK: %[[A:.*]] = arith.addf %[[S]], %[[LS]]
// CHECK-NEXT: graph.return %[[A]]
// With the default, 13 rows are one block.
// DEFAULT-LABEL: graph.func @prime
// DEFAULT-NEXT: graph.reduce sum %{{.*}} dims [0] : (tensor<13x5xf32>) -> tensor<5xf32>
// DEFAULT-NEXT: graph.return
graph.func @prime(%x: tensor<13x5xf32>) -> tensor<5xf32> {
  %0 = graph.reduce sum %x dims [0] : (tensor<13x5xf32>) -> tensor<5xf32>
  graph.return %0 : tensor<5xf32>
}

// -----

// Two blocks would be equal, but too few: 334 rows, in bf16.
// DEFAULT-LABEL: graph.func @two
// DEFAULT-DAG: graph.reshape %{{.*}} : (tensor<2x167x5xf32>) -> tensor<334x5xf32>
// DEFAULT-DAG: graph.slice %{{.*}} at [0, 0] sizes [320, 5]
// DEFAULT-DAG: graph.slice %{{.*}} at [320, 0] sizes [14, 5]
// DEFAULT-DAG: graph.reshape %{{.*}} : (tensor<320x5xf32>) -> tensor<32x10x5xf32>
// DEFAULT: %[[A:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<5xf32>
// DEFAULT-NEXT: arith.truncf %[[A]]
graph.func @two(%x: tensor<2x167x5xbf16>) -> tensor<5xbf16> {
  %0 = graph.reduce sum %x dims [0, 1] : (tensor<2x167x5xbf16>) -> tensor<5xbf16>
  graph.return %0 : tensor<5xbf16>
}

// -----

// What is left alone: fewer rows than two blocks need, maxima, whose order does not matter but
// whose rows are not worth it, integers, sums along rows, over everything, and over a middle dimension.
// CHECK-LABEL: graph.func @untouched
// CHECK-NOT: graph.reshape
// CHECK: graph.return
// A block may have one row, where that is asked for.
// SMALL-LABEL: graph.func @untouched
// SMALL: graph.reshape %{{.*}} : (tensor<3x5xf32>) -> tensor<3x1x5xf32>
// SMALL-NOT: graph.reshape
// SMALL: graph.return
graph.func @untouched(%few: tensor<3x5xf32>, %x: tensor<12x5xf32>, %i: tensor<12x5xi32>,
                      %deep: tensor<4x6x5xf32>)
    -> (tensor<5xf32>, tensor<5xf32>, tensor<5xi32>, tensor<12xf32>, tensor<f32>, tensor<4x5xf32>, tensor<6x5xf32>) {
  %1 = graph.reduce sum %few dims [0] : (tensor<3x5xf32>) -> tensor<5xf32>
  %2 = graph.reduce max %x dims [0] : (tensor<12x5xf32>) -> tensor<5xf32>
  %3 = graph.reduce sum %i dims [0] : (tensor<12x5xi32>) -> tensor<5xi32>
  %4 = graph.reduce sum %x dims [1] : (tensor<12x5xf32>) -> tensor<12xf32>
  %5 = graph.reduce sum %x dims [0, 1] : (tensor<12x5xf32>) -> tensor<f32>
  %6 = graph.reduce sum %deep dims [1] : (tensor<4x6x5xf32>) -> tensor<4x5xf32>
  %7 = graph.reduce sum %deep dims [0] : (tensor<4x6x5xf32>) -> tensor<6x5xf32>
  graph.return %1, %2, %3, %4, %5, %6, %7
    : tensor<5xf32>, tensor<5xf32>, tensor<5xi32>, tensor<12xf32>, tensor<f32>, tensor<4x5xf32>, tensor<6x5xf32>
}
