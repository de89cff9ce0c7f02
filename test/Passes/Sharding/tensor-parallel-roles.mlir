// Roles say what tensor parallelism divides, whatever parameters are called; what it does not know, it names.
// RUN: bowline-opt %s --apply-strategy --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: module @roles
module @roles {
  dist.strategy @s { mesh @mesh ["tp"] [2] }
  // CHECK: graph.param @up {{.*}}dist.sharding<[{}, {"tp"}]>
  graph.param @up : tensor<4x8xf32> init(#graph.fill<0.0>) key("0") role(column)
  // CHECK: graph.param @up_bias {{.*}}dist.sharding<[{"tp"}]>
  graph.param @up_bias : tensor<8xf32> init(#graph.fill<0.0>) key("1") role(column)
  // CHECK: graph.param @down {{.*}}dist.sharding<[{}, {"tp"}]>
  graph.param @down : tensor<4x8xf32> init(#graph.fill<0.0>) key("2") role(row)
  // CHECK: graph.param @scale {{.*}}dist.sharding<[{}]>
  graph.param @scale : tensor<4xf32> init(#graph.fill<0.0>) key("3") role(none)
  // CHECK: graph.param @words {{.*}}dist.sharding<[{"tp"}, {}]>
  graph.param @words : tensor<6x4xf32> init(#graph.fill<0.0>) key("4") role(vocabulary)
  // CHECK: graph.param @layers.0.attn.wq {{.*}}dist.sharding<[{}, {}]>
  // expected-remark @+1 {{'layers.0.attn.wq' and 1 more parameter stay whole on all 2 ranks along "tp": no role says how they are divided; give them one, as in graph.param ... role(column), or a line 'shard'}}
  graph.param @layers.0.attn.wq : tensor<4x4xf32> init(#graph.fill<0.0>) key("5")
  graph.param @layers.0.attn.wk : tensor<4x4xf32> init(#graph.fill<0.0>) key("6")
  // expected-remark @+1 {{'many' stays whole on all 2 ranks along "tp": tensor parallelism does not divide experts; a line 'shard' may}}
  graph.param @many : tensor<2x4x4xf32> init(#graph.fill<0.0>) key("7") role(expert)
  // expected-remark @+1 {{'idle' stays whole on all 2 ranks along "tp": no contraction with one input and one output dimension reads them}}
  graph.param @idle : tensor<4x4xf32> init(#graph.fill<0.0>) key("8") role(column)
  graph.func loss @loss(%tokens: tensor<3xi32>) -> tensor<3x4xf32> {
    %words = graph.read @words : tensor<6x4xf32>
    %x = graph.gather %words[%tokens] : (tensor<6x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>
    %up = graph.read @up : tensor<4x8xf32>
    %h = graph.dot_general %x, %up contract [1] x [0] : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %up_bias = graph.read @up_bias : tensor<8xf32>
    %b = graph.broadcast %up_bias dims [1] : (tensor<8xf32>) -> tensor<3x8xf32>
    %y = arith.addf %h, %b : tensor<3x8xf32>
    %down = graph.read @down : tensor<4x8xf32>
    %z = graph.dot_general %y, %down contract [1] x [1] : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
    graph.return %z : tensor<3x4xf32>
  }
}

// -----

// A line of the strategy decides before roles do.
// CHECK-LABEL: module @patterns
module @patterns {
  dist.strategy @s {
    mesh @mesh ["tp"] [2]
    shard "key.of.many" as <[{"tp"}, {}, {}]>
    shard "plain" as <[{}, {}]>
  }
  // CHECK: graph.param @many {{.*}}dist.sharding<[{"tp"}, {}, {}]>
  graph.param @many : tensor<2x4x4xf32> init(#graph.fill<0.0>) key("key.of.many") role(expert)
  // CHECK: graph.param @plain {{.*}}dist.sharding<[{}, {}]>
  graph.param @plain : tensor<4x4xf32> init(#graph.fill<0.0>) key("1")
}

// -----

// Queries, keys and values side by side: of one size each, and of others.
// CHECK-LABEL: module @fused
module @fused {
  dist.strategy @s { mesh @mesh ["tp"] [2] }
  // CHECK: graph.param @equal : tensor<4x2x8xf32> {{.*}}dist.sharding<[{}, {}, {"tp"}]>
  graph.param @equal : tensor<4x16xf32> init(#graph.fill<0.0>) key("0") role(fused 8, 8)
  // expected-remark @+1 {{'grouped' stays whole on all 2 ranks along "tp": their parts are not of one size}}
  graph.param @grouped : tensor<4x16xf32> init(#graph.fill<0.0>) key("1") role(fused 8, 4, 4)
  // expected-remark @+1 {{'wrong' stays whole on all 2 ranks along "tp": their output has not the size of their parts}}
  graph.param @wrong : tensor<4x16xf32> init(#graph.fill<0.0>) key("2") role(fused 5, 5, 5)
  graph.func loss @loss(%x: tensor<3x4xf32>) -> (tensor<3x8xf32>, tensor<3x16xf32>, tensor<3x16xf32>) {
    %w0 = graph.read @equal : tensor<4x16xf32>
    %0 = graph.dot_general %x, %w0 contract [1] x [0] : (tensor<3x4xf32>, tensor<4x16xf32>) -> tensor<3x16xf32>
    %a = graph.slice %0 at [0, 0] sizes [3, 8] : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %w1 = graph.read @grouped : tensor<4x16xf32>
    %1 = graph.dot_general %x, %w1 contract [1] x [0] : (tensor<3x4xf32>, tensor<4x16xf32>) -> tensor<3x16xf32>
    %w2 = graph.read @wrong : tensor<4x16xf32>
    %2 = graph.dot_general %x, %w2 contract [1] x [0] : (tensor<3x4xf32>, tensor<4x16xf32>) -> tensor<3x16xf32>
    graph.return %a, %1, %2 : tensor<3x8xf32>, tensor<3x16xf32>, tensor<3x16xf32>
  }
}

// -----

// Fewer key heads than ranks: as many ranks as share the queries of one keep it. A bias goes the way of its projection.
// CHECK-LABEL: module @keys
module @keys {
  dist.strategy @s { mesh @mesh ["tp"] [4] }
  // CHECK: dist.mesh @mesh ["tp/0", "tp/1"] [2, 2]
  // CHECK: graph.param @q {{.*}}dist.sharding<[{"tp/0", "tp/1"}, {}]>
  graph.param @q : tensor<8x4xf32> init(#graph.fill<0.0>) key("0") role(column)
  // CHECK: graph.param @k {{.*}}dist.sharding<[{"tp/0"}, {}]>
  graph.param @k : tensor<4x4xf32> init(#graph.fill<0.0>) key("1") role(keys shared 2)
  // CHECK: graph.param @k_bias {{.*}}dist.sharding<[{"tp/0"}]>
  graph.param @k_bias : tensor<4xf32> init(#graph.fill<0.0>) key("2") role(keys shared 2)
  graph.func loss @loss(%x: tensor<3x4xf32>) -> (tensor<3x4x2xf32>, tensor<3x2x2xf32>) {
    %wq = graph.read @q : tensor<8x4xf32>
    %0 = graph.dot_general %x, %wq contract [1] x [1] : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
    %1 = graph.reshape %0 : (tensor<3x8xf32>) -> tensor<3x4x2xf32>
    %wk = graph.read @k : tensor<4x4xf32>
    %2 = graph.dot_general %x, %wk contract [1] x [1] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %bk = graph.read @k_bias : tensor<4xf32>
    %3 = graph.broadcast %bk dims [1] : (tensor<4xf32>) -> tensor<3x4xf32>
    %4 = arith.addf %2, %3 : tensor<3x4xf32>
    %5 = graph.reshape %4 : (tensor<3x4xf32>) -> tensor<3x2x2xf32>
    graph.return %1, %5 : tensor<3x4x2xf32>, tensor<3x2x2xf32>
  }
}

// -----

// What a weight's dimensions are does not depend on which function comes first: where functions differ, it stays whole.
// CHECK-LABEL: module @functions
module @functions {
  dist.strategy @s { mesh @mesh ["tp"] [2] }
  // expected-remark @+1 {{'both' stays whole on all 2 ranks along "tp": functions contract other dimensions of them, or have other numbers of heads}}
  graph.param @both : tensor<4x8xf32> init(#graph.fill<0.0>) key("0") role(column)
  // CHECK: graph.param @one : tensor<4x8xf32> {{.*}}dist.sharding<[{}, {"tp"}]>
  graph.param @one : tensor<4x8xf32> init(#graph.fill<0.0>) key("1") role(column)
  graph.func @transposed(%x: tensor<3x8xf32>) -> tensor<3x4xf32> {
    %w = graph.read @both : tensor<4x8xf32>
    %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
    graph.return %0 : tensor<3x4xf32>
  }
  graph.func loss @loss(%x: tensor<3x4xf32>, %g: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x4xf32>) {
    %w = graph.read @both : tensor<4x8xf32>
    %0 = graph.dot_general %x, %w contract [1] x [0] : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %v = graph.read @one : tensor<4x8xf32>
    %1 = graph.dot_general %x, %v contract [1] x [0] : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %2 = graph.dot_general %1, %v contract [1] x [1] : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
    graph.return %0, %1, %2 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x4xf32>
  }
}

// -----

// Matrices in blocks of bits: whole blocks are divided, and rows where these do not divide.
// CHECK-LABEL: module @blocks
module @blocks {
  dist.strategy @s { mesh @mesh ["tp"] [2] }
  // CHECK: graph.param frozen @words {{.*}}dist.sharding<[{"tp"}, {}, {}]>
  graph.param frozen @words : tensor<6x2x20xui8> init(#graph.fill<0.0>) key("0") role(vocabulary) format("q4_1")
  // CHECK: graph.param frozen @up {{.*}}dist.sharding<[{"tp"}, {}, {}]>
  graph.param frozen @up : tensor<96x2x20xui8> init(#graph.fill<0.0>) key("1") role(column) format("q4_1")
  // CHECK: graph.param frozen @odd {{.*}}dist.sharding<[{"tp"}, {}, {}]>
  graph.param frozen @odd : tensor<64x3x20xui8> init(#graph.fill<0.0>) key("2") role(row) format("q4_1")
  // CHECK: graph.param frozen @even {{.*}}dist.sharding<[{}, {"tp"}, {}]>
  graph.param frozen @even : tensor<32x2x20xui8> init(#graph.fill<0.0>) key("3") role(row) format("q4_1")
  // expected-remark @+1 {{'neither' stays whole on all 2 ranks along "tp": neither their rows nor the blocks of these divide, and blocks of bits are not padded}}
  graph.param frozen @neither : tensor<3x1x20xui8> init(#graph.fill<0.0>) key("4") role(row) format("q4_1")
  // expected-remark @+1 {{'parts' stays whole on all 2 ranks along "tp": parts of a matrix in blocks of bits are not divided}}
  graph.param frozen @parts : tensor<6x1x20xui8> init(#graph.fill<0.0>) key("5") role(fused 2, 2, 2) format("q4_1")
  graph.func loss @loss(%tokens: tensor<3xi32>) -> (tensor<3x3xf32>, tensor<3x6xf32>) {
    %words = graph.read @words : tensor<6x2x20xui8>
    %x = graph.quantized_gather %words[%tokens] format "q4_1" : (tensor<6x2x20xui8>, tensor<3xi32>) -> tensor<3x64xf32>
    %up = graph.read @up : tensor<96x2x20xui8>
    %h = graph.quantized_dot %x, %up format "q4_1" : (tensor<3x64xf32>, tensor<96x2x20xui8>) -> tensor<3x96xf32>
    %odd = graph.read @odd : tensor<64x3x20xui8>
    %y = graph.quantized_dot %h, %odd format "q4_1" : (tensor<3x96xf32>, tensor<64x3x20xui8>) -> tensor<3x64xf32>
    %even = graph.read @even : tensor<32x2x20xui8>
    %z = graph.quantized_dot %y, %even format "q4_1" : (tensor<3x64xf32>, tensor<32x2x20xui8>) -> tensor<3x32xf32>
    %neither = graph.read @neither : tensor<3x1x20xui8>
    %n = graph.quantized_dot %z, %neither format "q4_1" : (tensor<3x32xf32>, tensor<3x1x20xui8>) -> tensor<3x3xf32>
    %parts = graph.read @parts : tensor<6x1x20xui8>
    %p = graph.quantized_dot %z, %parts format "q4_1" : (tensor<3x32xf32>, tensor<6x1x20xui8>) -> tensor<3x6xf32>
    graph.return %n, %p : tensor<3x3xf32>, tensor<3x6xf32>
  }
}

// -----

// Where heads do not divide, rows of the matrix in blocks of bits that reads them do, if they can.
// CHECK-LABEL: module @heads_and_blocks
module @heads_and_blocks {
  dist.strategy @s { mesh @mesh ["tp"] [2] }
  // CHECK: graph.param frozen @out {{.*}}dist.sharding<[{"tp"}, {}, {}]>
  graph.param frozen @out : tensor<64x2x20xui8> init(#graph.fill<0.0>) key("0") role(row) format("q4_1")
  // expected-remark @+1 {{'odd_out' stays whole on all 2 ranks along "tp": their number of heads does not divide}}
  graph.param frozen @odd_out : tensor<63x2x20xui8> init(#graph.fill<0.0>) key("1") role(row) format("q4_1")
  graph.func loss @loss(%heads: tensor<4x1x64xf32>) -> (tensor<4x64xf32>, tensor<4x63xf32>) {
    %x = graph.reshape %heads : (tensor<4x1x64xf32>) -> tensor<4x64xf32>
    %out = graph.read @out : tensor<64x2x20xui8>
    %y = graph.quantized_dot %x, %out format "q4_1" : (tensor<4x64xf32>, tensor<64x2x20xui8>) -> tensor<4x64xf32>
    %odd = graph.read @odd_out : tensor<63x2x20xui8>
    %z = graph.quantized_dot %x, %odd format "q4_1" : (tensor<4x64xf32>, tensor<63x2x20xui8>) -> tensor<4x63xf32>
    graph.return %y, %z : tensor<4x64xf32>, tensor<4x63xf32>
  }
}
