// Large tensors that contradicting choices gather on every rank are warned of, with both choices.
// RUN: bowline-opt %s --split-input-file --propagate-shardings=large-bytes=512 --verify-diagnostics

// A weight of 32 x 16 x 4 bytes is large here, one of 12 x 8 x 4 is not.
dist.mesh @mesh ["dp"] [2]
graph.param @layers.3.up : tensor<32x16xf32> init(#graph.fill<0.0>) key("up") {dist.sharding = #dist.sharding<[{"dp"}, {}]>}
graph.param @layers.3.down : tensor<12x8xf32> init(#graph.fill<0.0>) key("down") {dist.sharding = #dist.sharding<[{"dp"}, {}]>}
graph.func @two(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>},
                %y: tensor<2x8xf32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>}) -> (tensor<8x32xf32>, tensor<2x12xf32>) {
  // expected-warning @+1 {{each of the 2 ranks along "dp" gathers all shards of a 'tensor<32x16xf32>', 2048 bytes: variable 'layers.3.up' shards it along "dp", but argument 'arg0' has "dp" in another dimension of graph.dot_general: shard one of them along another axis, or not at all}}
  %w = graph.read @layers.3.up : tensor<32x16xf32>
  // expected-warning @+1 {{argument 'arg0' shards it along "dp", but graph.return needs that dimension whole: shard another one, or none}}
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
  %v = graph.read @layers.3.down : tensor<12x8xf32>
  %1 = graph.dot_general %y, %v contract [1] x [1] : (tensor<2x8xf32>, tensor<12x8xf32>) -> tensor<2x12xf32>
  graph.return %0, %1 : tensor<8x32xf32>, tensor<2x12xf32>
}

// -----

// Layers that are alike are one warning.
dist.mesh @mesh ["tp"] [2]
graph.param @layers.0.norm : tensor<32x16xf32> init(#graph.fill<0.0>) key("0") {dist.sharding = #dist.sharding<[{}, {"tp"}]>}
graph.param @layers.1.norm : tensor<32x16xf32> init(#graph.fill<0.0>) key("1") {dist.sharding = #dist.sharding<[{}, {"tp"}]>}
graph.func @layers(%scale: tensor<16xf32>) -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  // expected-warning @+1 {{variable 'layers.0.norm' shards it along "tp", but graph.rms_norm needs that dimension whole: shard another one, or none; so it is 2 times}}
  %0 = graph.read @layers.0.norm : tensor<32x16xf32>
  %1 = graph.rms_norm %0, %scale eps 1.0e-05 : (tensor<32x16xf32>, tensor<16xf32>) -> tensor<32x16xf32>
  %2 = graph.read @layers.1.norm : tensor<32x16xf32>
  %3 = graph.rms_norm %2, %scale eps 1.0e-05 : (tensor<32x16xf32>, tensor<16xf32>) -> tensor<32x16xf32>
  graph.return %1, %3 : tensor<32x16xf32>, tensor<32x16xf32>
}

// -----

// What sequence parallelism gathers is meant so.
dist.mesh @mesh ["tp"] [2]
graph.param @table : tensor<64x16xf32> init(#graph.fill<0.0>) key("table") {dist.sharding = #dist.sharding<[{}, {}]>}
graph.param @up : tensor<32x16xf32> init(#graph.fill<0.0>) key("up") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.func @sequence(%tokens: tensor<2x8xi32>) -> tensor<f32> {
  %0 = graph.read @table : tensor<64x16xf32>
  %1 = graph.gather %0[%tokens] {dist.origin = "sequence parallelism", dist.shardings = [#dist.sharding<[{}, {"tp", ?}, {}]>]} : (tensor<64x16xf32>, tensor<2x8xi32>) -> tensor<2x8x16xf32>
  %2 = graph.read @up : tensor<32x16xf32>
  %3 = graph.dot_general %1, %2 contract [2] x [1] : (tensor<2x8x16xf32>, tensor<32x16xf32>) -> tensor<2x8x32xf32>
  %4 = graph.reduce sum %3 dims [0, 1, 2] : (tensor<2x8x32xf32>) -> tensor<f32>
  graph.return %4 : tensor<f32>
}
