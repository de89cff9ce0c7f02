// What a strategy asks for and the module cannot give is named, with the nearest valid choice.
// RUN: bowline-opt %s --apply-strategy --verify-diagnostics --split-input-file

dist.strategy @pattern {
  mesh @mesh ["dp", "tp"] [2, 2]
  // expected-error @+1 {{pattern "layers.*.attn.w_q" matches no parameter; the nearest is 'layers.0.attn.wq'}}
  shard "layers.*.attn.w_q" as <[{"tp"}, {}]>
}
graph.param @embed : tensor<8x4xf32> init(#graph.fill<0.0>) key("embed")
graph.param @layers.0.attn.wq : tensor<4x4xf32> init(#graph.fill<0.0>) key("wq")

// -----

dist.strategy @no_parameters {
  mesh @mesh ["tp"] [2]
  // expected-error @+1 {{pattern "*" matches no parameter}}
  shard "*" as <[{"tp"}, {}]>
}

// -----

dist.strategy @rank {
  mesh @mesh ["tp"] [2]
  // expected-error @+1 {{matches 'w' with 'tensor<4xf32>', which needs 1 dimensions in its sharding, not 2}}
  shard "w" as <[{"tp"}, {}]>
}
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w")

// -----

dist.strategy @size {
  mesh @mesh ["dp", "tp"] [2, 4]
  // expected-error @+1 {{matches 'w', whose dimension 1 of 12 does not divide over the 8 ranks along "dp", "tp"; the nearest valid sizes are 8 and 16}}
  shard "w" as <[{}, {"dp", "tp"}]>
}
graph.param @w : tensor<4x12xf32> init(#graph.fill<0.0>) key("w")

// -----

dist.strategy @batch {
  mesh @mesh ["dp"] [4]
}
// expected-error @+1 {{@loss: the batch in 'tokens' of 6 does not divide over the 4 ranks along "dp"; the nearest valid sizes are 4 and 8}}
graph.func @loss(%tokens: tensor<6x8xi32> {graph.name = "tokens"}) {
  graph.return
}

// -----

dist.strategy @batch_of_two_axes {
  mesh @mesh ["dp", "fsdp"] [2, 4]
}
// expected-error @+1 {{of 12 does not divide over the 8 ranks along "dp", "fsdp"; the nearest valid sizes are 8 and 16}}
graph.func @loss(%tokens: tensor<12x8xi32> {graph.name = "tokens"}) {
  graph.return
}

// -----

dist.strategy @small_batch {
  mesh @mesh ["data"] [4]
  batch "data"
}
// expected-error @+1 {{of 3 does not divide over the 4 ranks along "data"; the nearest valid size is 4}}
graph.func @loss(%x: tensor<3x8xf32>) {
  graph.return
}

// -----

dist.strategy @sequence {
  mesh @mesh ["tp"] [4]
  sequence_parallel "tp"
}
graph.param @embed : tensor<8x4xf32> init(#graph.fill<0.0>) key("embed")
graph.func @loss(%tokens: tensor<2x6xi32>) -> tensor<2x6x4xf32> {
  %embed = graph.read @embed : tensor<8x4xf32>
  // expected-error @+1 {{the residual stream's sequence of 6 does not divide over the 4 ranks along "tp"; the nearest valid sizes are 4 and 8}}
  %0 = graph.gather %embed[%tokens] : (tensor<8x4xf32>, tensor<2x6xi32>) -> tensor<2x6x4xf32>
  graph.return %0 : tensor<2x6x4xf32>
}

// -----

dist.strategy @schedule {
  mesh @mesh ["pp"] [2]
  // expected-error @+1 {{there is no schedule '1f1'; the nearest is '1f1b'}}
  schedule "1f1"
}

// -----

dist.strategy @stages {
  mesh @mesh ["pp"] [2]
  // expected-error @+1 {{are 3, but there must be 2: 2 ranks along "pp"}}
  stages "pp" split "[0..1],[2..2],[3..3]"
}

// -----

dist.strategy @zero {
  mesh @mesh ["tp"] [2]
  // expected-error @+1 {{needs an axis: the mesh has none for the batch}}
  zero level 1
}
