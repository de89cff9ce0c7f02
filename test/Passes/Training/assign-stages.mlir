// Values that cross go from neighbour to neighbour; what depends on no parameter stays where it is; a parameter that a
// second stage uses gets a mirror there.
// RUN: bowline-opt %s --assign-stages --split-input-file | FileCheck %s

// The residual stream, a skip connection over two stages, and positions that every stage uses.
// CHECK-LABEL: module @skip
// CHECK-SAME: stage.count = 3
module @skip {
  dist.strategy @s { mesh @mesh ["pp"] [3] }
  // CHECK: graph.param @embed {{.*}} {stage.index = array<i64: 0>}
  graph.param @embed : tensor<16x4xf32> init(#graph.normal<0.02>) key("embed")
  // CHECK: graph.param @h.0.w {{.*}} {stage.index = array<i64: 0>}
  graph.param @h.0.w : tensor<4x4xf32> init(#graph.normal<0.02>) key("h.0.w") layer(0)
  // CHECK: graph.param @h.1.w {{.*}} {stage.index = array<i64: 1>}
  graph.param @h.1.w : tensor<4x4xf32> init(#graph.normal<0.02>) key("h.1.w") layer(1)
  // CHECK: graph.param @h.2.w {{.*}} {stage.index = array<i64: 2>}
  graph.param @h.2.w : tensor<4x4xf32> init(#graph.normal<0.02>) key("h.2.w") layer(2)
  // CHECK: graph.func loss @loss
  graph.func loss @loss(%tokens: tensor<8xi32>) -> (tensor<f32>, tensor<f32>) {
    %count = arith.constant dense<8.0> : tensor<f32>
    // CHECK: %[[I:.*]] = graph.iota
    %i = graph.iota dim 0 : tensor<8xi32>
    // CHECK-NEXT: %[[P:.*]] = arith.sitofp %[[I]]
    %p = arith.sitofp %i : tensor<8xi32> to tensor<8xf32>
    // CHECK-NEXT: %[[B:.*]] = graph.broadcast %[[P]]
    %b = graph.broadcast %p dims [0] : (tensor<8xf32>) -> tensor<8x4xf32>
    %embed = graph.read @embed : tensor<16x4xf32>
    // CHECK: %[[X0:.*]] = graph.gather
    %x0 = graph.gather %embed[%tokens] : (tensor<16x4xf32>, tensor<8xi32>) -> tensor<8x4xf32>
    // CHECK-NEXT: %[[S1:.*]] = stage.transfer %[[X0]] from 0 to 1
    // CHECK-NEXT: %[[S2:.*]] = stage.transfer %[[S1]] from 1 to 2
    %w0 = graph.read @h.0.w : tensor<4x4xf32>
    // CHECK: %[[Y0:.*]] = graph.dot_general
    %y0 = graph.dot_general %x0, %w0 contract [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    // CHECK-NEXT: %[[X1:.*]] = arith.addf %[[Y0]], %[[B]]
    // CHECK-NEXT: %[[T1:.*]] = stage.transfer %[[X1]] from 0 to 1
    %x1 = arith.addf %y0, %b : tensor<8x4xf32>
    // CHECK-NEXT: %[[W1:.*]] = graph.read @h.1.w
    %w1 = graph.read @h.1.w : tensor<4x4xf32>
    // CHECK-NEXT: %[[Y1:.*]] = graph.dot_general %[[T1]], %[[W1]]
    %y1 = graph.dot_general %x1, %w1 contract [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    // CHECK-NEXT: %[[X2:.*]] = arith.addf %[[Y1]], %[[B]]
    // CHECK-NEXT: %[[T2:.*]] = stage.transfer %[[X2]] from 1 to 2
    %x2 = arith.addf %y1, %b : tensor<8x4xf32>
    // CHECK-NEXT: %[[W2:.*]] = graph.read @h.2.w
    %w2 = graph.read @h.2.w : tensor<4x4xf32>
    // CHECK-NEXT: %[[Y2:.*]] = graph.dot_general %[[T2]], %[[W2]]
    %y2 = graph.dot_general %x2, %w2 contract [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    // CHECK-NEXT: arith.addf %[[Y2]], %[[S2]]
    %x3 = arith.addf %y2, %x0 : tensor<8x4xf32>
    // CHECK-NOT: stage.transfer
    %sum = graph.reduce sum %x3 dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
    graph.return %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// A parameter is used by two stages in other forms: each makes its own. The strategy says which layers a stage has.
// CHECK-LABEL: module @tied
// CHECK-SAME: stage.count = 2
module @tied {
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    stages "pp" split "[0],[1..2]"
  }
  // CHECK: graph.param @embed {{.*}} {stage.index = array<i64: 0>}
  // CHECK-NEXT: graph.param @embed.mirror1 : tensor<16x4xf32> init(#graph.normal<0.02>) key("embed") mirror_of @embed {stage.index = array<i64: 1>}
  graph.param @embed : tensor<16x4xf32> init(#graph.normal<0.02>) key("embed")
  graph.param @layers.0.scale : tensor<8x4xbf16> init(#graph.fill<1.0>) key("0") layer(0)
  // CHECK: graph.param @layers.1.scale {{.*}} {stage.index = array<i64: 1>}
  graph.param @layers.1.scale : tensor<8x4xbf16> init(#graph.fill<1.0>) key("1") layer(1)
  // CHECK: graph.param @layers.2.scale {{.*}} {stage.index = array<i64: 1>}
  graph.param @layers.2.scale : tensor<8x4xbf16> init(#graph.fill<1.0>) key("2") layer(2)
  graph.func loss @loss(%tokens: tensor<8xi32>) -> tensor<8x16xbf16> {
    %embed = graph.read @embed : tensor<16x4xf32>
    // CHECK: %[[M:.*]] = graph.read @embed.mirror1
    // CHECK: %[[E0:.*]] = arith.truncf %embed
    // CHECK-NEXT: %[[E1:.*]] = arith.truncf %[[M]]
    %narrow = arith.truncf %embed : tensor<16x4xf32> to tensor<16x4xbf16>
    // CHECK-NEXT: graph.gather %[[E0]]
    %x0 = graph.gather %narrow[%tokens] : (tensor<16x4xbf16>, tensor<8xi32>) -> tensor<8x4xbf16>
    %s0 = graph.read @layers.0.scale : tensor<8x4xbf16>
    %x1 = arith.mulf %x0, %s0 : tensor<8x4xbf16>
    // CHECK: stage.transfer %{{.*}} from 0 to 1 : tensor<8x4xbf16>
    %s1 = graph.read @layers.1.scale : tensor<8x4xbf16>
    %x2 = arith.mulf %x1, %s1 : tensor<8x4xbf16>
    // CHECK-NOT: stage.transfer
    %s2 = graph.read @layers.2.scale : tensor<8x4xbf16>
    %x3 = arith.mulf %x2, %s2 : tensor<8x4xbf16>
    // CHECK: graph.dot_general %{{.*}}, %[[E1]]
    %y = graph.dot_general %x3, %narrow contract [1] x [1] : (tensor<8x4xbf16>, tensor<16x4xbf16>) -> tensor<8x16xbf16>
    graph.return %y : tensor<8x16xbf16>
  }
}

// -----

// Two ranks with two stages each. The second layer is as expensive as the others together.
// CHECK-LABEL: module @chunks
// CHECK-SAME: stage.count = 4
module @chunks {
  dist.strategy @s {
    mesh @mesh ["pp"] [2]
    schedule "zb_v"
    microbatches 8
  }
  // CHECK: @model.layers.0.w {{.*}} {stage.index = array<i64: 0>}
  // CHECK: @model.layers.1.w {{.*}} {stage.index = array<i64: 1>}
  // CHECK: @model.layers.2.w {{.*}} {stage.index = array<i64: 2>}
  // CHECK: @model.layers.3.w {{.*}} {stage.index = array<i64: 2>}
  // CHECK: @model.layers.4.w {{.*}} {stage.index = array<i64: 3>}
  graph.param @model.layers.0.w : tensor<4x4xf32> init(#graph.fill<1.0>) key("0") layer(0)
  graph.param @model.layers.1.w : tensor<4x4x4xf32> init(#graph.fill<1.0>) key("1") layer(1)
  graph.param @model.layers.2.w : tensor<4x4xf32> init(#graph.fill<1.0>) key("2") layer(2)
  graph.param @model.layers.3.w : tensor<4x4xf32> init(#graph.fill<1.0>) key("3") layer(3)
  graph.param @model.layers.4.w : tensor<4x4xf32> init(#graph.fill<1.0>) key("4") layer(4)
  graph.func loss @loss(%x: tensor<8x4xf32>) -> tensor<f32> {
    %w0 = graph.read @model.layers.0.w : tensor<4x4xf32>
    %w1 = graph.read @model.layers.1.w : tensor<4x4x4xf32>
    %w2 = graph.read @model.layers.2.w : tensor<4x4xf32>
    %w3 = graph.read @model.layers.3.w : tensor<4x4xf32>
    %w4 = graph.read @model.layers.4.w : tensor<4x4xf32>
    %0 = graph.dot_general %x, %w0 contract [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %1 = graph.dot_general %0, %w1 contract [1] x [0] : (tensor<8x4xf32>, tensor<4x4x4xf32>) -> tensor<8x4x4xf32>
    %2 = graph.reduce sum %1 dims [2] : (tensor<8x4x4xf32>) -> tensor<8x4xf32>
    %3 = graph.dot_general %2, %w2 contract [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %4 = graph.dot_general %3, %w3 contract [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %5 = graph.dot_general %4, %w4 contract [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %6 = graph.reduce sum %5 dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
    graph.return %6 : tensor<f32>
  }
}

// -----

// One rank along the axis: nothing to divide.
// CHECK-LABEL: module @whole
// CHECK-NOT: stage.
module @whole {
  dist.strategy @s { mesh @mesh ["pp", "dp"] [1, 4] }
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0") layer(0)
}

// -----

// CHECK-LABEL: module @none
// CHECK-NOT: stage.
module @none {
  graph.param @layers.0.w : tensor<4xf32> init(#graph.fill<1.0>) key("0") layer(0)
}
