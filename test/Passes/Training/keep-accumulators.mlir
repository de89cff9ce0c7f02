// Sums that are widened again are not rounded first.
// RUN: bowline-opt %s --keep-accumulators | FileCheck %s

// CHECK-LABEL: graph.func @widened
// CHECK-NEXT: %[[D:.*]] = graph.dot_general {{.*}} : (tensor<4x3xbf16>, tensor<4x5xbf16>) -> tensor<3x5xf32>
// CHECK-NEXT: graph.write @g, %[[D]] : tensor<3x5xf32>
// CHECK-NEXT: graph.return
graph.state @g accumulator : tensor<3x5xf32> init(#graph.fill<0.0>)
graph.func @widened(%x: tensor<4x3xbf16>, %y: tensor<4x5xbf16>) {
  %0 = graph.dot_general %x, %y contract [0] x [0] : (tensor<4x3xbf16>, tensor<4x5xbf16>) -> tensor<3x5xbf16>
  %1 = arith.extf %0 : tensor<3x5xbf16> to tensor<3x5xf32>
  graph.write @g, %1 : tensor<3x5xf32>
  graph.return
}

// Batched products too.
// CHECK-LABEL: graph.func @batched
// CHECK-NEXT: %[[D:.*]] = graph.dot_general {{.*}} batch [0] x [0] contract [1] x [1] : {{.*}} -> tensor<2x3x3xf32>
// CHECK-NEXT: graph.return %[[D]]
graph.func @batched(%x: tensor<2x4x3xbf16>) -> tensor<2x3x3xf32> {
  %0 = graph.dot_general %x, %x batch [0] x [0] contract [1] x [1] : (tensor<2x4x3xbf16>, tensor<2x4x3xbf16>) -> tensor<2x3x3xbf16>
  %1 = arith.extf %0 : tensor<2x3x3xbf16> to tensor<2x3x3xf32>
  graph.return %1 : tensor<2x3x3xf32>
}

// Something else reads the rounded result: it would have to be rounded after all.
// CHECK-LABEL: graph.func @read_twice
// CHECK-NEXT: graph.dot_general {{.*}} -> tensor<3x5xbf16>
// CHECK-NEXT: arith.extf
graph.func @read_twice(%x: tensor<4x3xbf16>, %y: tensor<4x5xbf16>) -> (tensor<3x5xbf16>, tensor<3x5xf32>) {
  %0 = graph.dot_general %x, %y contract [0] x [0] : (tensor<4x3xbf16>, tensor<4x5xbf16>) -> tensor<3x5xbf16>
  %1 = arith.extf %0 : tensor<3x5xbf16> to tensor<3x5xf32>
  graph.return %0, %1 : tensor<3x5xbf16>, tensor<3x5xf32>
}

// Sums are kept in f32, not in f64.
// CHECK-LABEL: graph.func @wider
// CHECK-NEXT: graph.dot_general {{.*}} -> tensor<3x5xbf16>
// CHECK-NEXT: arith.extf
// CHECK-NEXT: graph.dot_general {{.*}} -> tensor<3x5xf32>
// CHECK-NEXT: arith.extf
graph.func @wider(%x: tensor<4x3xbf16>, %y: tensor<4x5xbf16>, %p: tensor<4x3xf32>, %q: tensor<4x5xf32>) -> (tensor<3x5xf64>, tensor<3x5xf64>) {
  %0 = graph.dot_general %x, %y contract [0] x [0] : (tensor<4x3xbf16>, tensor<4x5xbf16>) -> tensor<3x5xbf16>
  %1 = arith.extf %0 : tensor<3x5xbf16> to tensor<3x5xf64>
  %2 = graph.dot_general %p, %q contract [0] x [0] : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %3 = arith.extf %2 : tensor<3x5xf32> to tensor<3x5xf64>
  graph.return %1, %3 : tensor<3x5xf64>, tensor<3x5xf64>
}

// Other operations round where their type says so.
// CHECK-LABEL: graph.func @not_a_contraction
// CHECK-NEXT: arith.mulf {{.*}} : tensor<4xbf16>
// CHECK-NEXT: arith.extf
graph.func @not_a_contraction(%x: tensor<4xbf16>) -> tensor<4xf32> {
  %0 = arith.mulf %x, %x : tensor<4xbf16>
  %1 = arith.extf %0 : tensor<4xbf16> to tensor<4xf32>
  graph.return %1 : tensor<4xf32>
}
