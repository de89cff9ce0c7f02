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

dist.strategy @slash {
  // expected-error @+1 {{has axis 'tp/0', but '/' stands for a part of an axis; the nearest valid name is 'tp'}}
  mesh @mesh ["dp", "tp/0"] [2, 4]
}

// -----

// Of 4 heads for keys, 6 ranks can neither have one or more each, nor share each evenly.
dist.strategy @key_heads {
  mesh @mesh ["tp"] [6]
}
graph.param @layers.0.attn.wq : tensor<24x8xf32> init(#graph.fill<0.0>) key("wq") role(column)
// expected-error @+1 {{'layers.0.attn.wk' has 4 heads: the 6 ranks along "tp" neither divide them nor share each of them evenly; numbers of ranks that do are 1, 2, 4, 12}}
graph.param @layers.0.attn.wk : tensor<8x8xf32> init(#graph.fill<0.0>) key("wk") role(keys shared 3)
graph.func loss @loss(%x: tensor<2x8xf32>) -> (tensor<2x12x2xf32>, tensor<2x4x2xf32>) {
  %wq = graph.read @layers.0.attn.wq : tensor<24x8xf32>
  %wk = graph.read @layers.0.attn.wk : tensor<8x8xf32>
  %0 = graph.dot_general %x, %wq contract [1] x [1] : (tensor<2x8xf32>, tensor<24x8xf32>) -> tensor<2x24xf32>
  %1 = graph.dot_general %x, %wk contract [1] x [1] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %2 = graph.reshape %0 : (tensor<2x24xf32>) -> tensor<2x12x2xf32>
  %3 = graph.reshape %1 : (tensor<2x8xf32>) -> tensor<2x4x2xf32>
  graph.return %2, %3 : tensor<2x12x2xf32>, tensor<2x4x2xf32>
}

// -----

dist.strategy @batch {
  mesh @mesh ["dp"] [4]
}
// expected-error @+1 {{@loss: the batch in 'tokens' of 6 does not divide over the 4 ranks along "dp"; the nearest valid sizes are 4 and 8}}
graph.func loss @loss(%tokens: tensor<6x8xi32> {graph.name = "tokens"}) {
  graph.return
}

// -----

dist.strategy @batch_of_two_axes {
  mesh @mesh ["dp", "fsdp"] [2, 4]
}
// expected-error @+1 {{of 12 does not divide over the 8 ranks along "dp", "fsdp"; the nearest valid sizes are 8 and 16}}
graph.func loss @loss(%tokens: tensor<12x8xi32> {graph.name = "tokens"}) {
  graph.return
}

// -----

dist.strategy @small_batch {
  mesh @mesh ["data"] [4]
  batch "data"
}
// expected-error @+1 {{of 3 does not divide over the 4 ranks along "data"; the nearest valid size is 4}}
graph.func loss @loss(%x: tensor<3x8xf32>) {
  graph.return
}

// -----

dist.strategy @sequence {
  mesh @mesh ["tp"] [4]
  sequence_parallel "tp"
}
graph.param @embed : tensor<8x4xf32> init(#graph.fill<0.0>) key("embed") role(vocabulary)
graph.func loss @loss(%tokens: tensor<2x6xi32>) -> tensor<2x6x4xf32> {
  %embed = graph.read @embed : tensor<8x4xf32>
  // expected-error @+1 {{the residual stream's sequence of 6 does not divide over the 4 ranks along "tp"; the nearest valid sizes are 4 and 8}}
  %0 = graph.gather %embed[%tokens] : (tensor<8x4xf32>, tensor<2x6xi32>) -> tensor<2x6x4xf32>
  graph.return %0 : tensor<2x6x4xf32>
}

// -----

// Rows of a parameter that is no embedding are no residual stream, whatever shape they have.
dist.strategy @no_embedding {
  mesh @mesh ["tp"] [2]
  // expected-error @+1 {{finds no residual stream: no function looks up tokens [batch, sequence], of several positions, in a parameter with role(vocabulary); give the embedding its role, or remove the line}}
  sequence_parallel "tp"
}
graph.param @table : tensor<8x4xf32> init(#graph.fill<0.0>) key("table") role(none)
graph.func loss @loss(%tokens: tensor<2x6xi32>) -> tensor<2x6x4xf32> {
  %table = graph.read @table : tensor<8x4xf32>
  %0 = graph.gather %table[%tokens] : (tensor<8x4xf32>, tensor<2x6xi32>) -> tensor<2x6x4xf32>
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
  // expected-error @+1 {{has the layers of 3 stages, but there must be 2: 2 ranks along "pp"}}
  stages "pp" split "[0..1],[2],[3]"
}

// -----

dist.strategy @zero {
  mesh @mesh ["tp"] [2]
  // expected-error @+1 {{needs an axis of the batch, and the mesh has none; add one of N ranks, --mesh dp=N,tp=2, or in a file the axis "dp" of size N}}
  zero level 1
}

// -----

dist.strategy @sequence_axis {
  mesh @mesh ["dp", "tp"] [2, 2]
  // expected-error @+1 {{takes axis "dp", the axis of the batch; use that of tensor parallelism, "tp"}}
  sequence_parallel "dp"
}

// -----

dist.strategy @unused {
  // expected-error @+1 {{has axis 'tpx', which nothing uses; axes named 'pp', 'fsdp', 'tp' have a use by themselves; give this axis a line of a strategy, such as batch "tpx"}}
  mesh @mesh ["dp", "tpx"] [2, 2]
}

// -----

dist.strategy @schedule_without_stages {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{needs stages, but the mesh has no axis for them; give it one, for instance "pp" of 2}}
  schedule "1f1b"
}

// -----

dist.strategy @schedule_of_one_rank {
  mesh @mesh ["pp", "dp"] [1, 2]
  // expected-error @+1 {{orders the ranks along "pp", of which there is one; remove it, or let there be 2}}
  schedule "gpipe"
}

// -----

dist.strategy @table_of_nobody {
  mesh @mesh ["pp"] [2]
  // expected-error @+1 {{names the file 'two.csv', whose text must stand behind it: table "..."; bowline-compile reads it there}}
  schedule "two.csv"
}

// -----

dist.strategy @split_of_one_rank {
  mesh @mesh ["pp", "dp"] [1, 2]
  // expected-error @+1 {{divides layers among the ranks along "pp", of which there is one; remove 'split', or let there be 2}}
  stages "pp" split "[0],[1]"
}

// -----

dist.strategy @split {
  mesh @mesh ["pp"] [2]
  // expected-error @+1 {{has '[0-1]' in '[0-1],[2]'; the nearest valid forms are 'balanced' and '[0..5],[6..10],[11]', first and last layer or the only one}}
  stages "pp" split "[0-1],[2]"
}

// -----

dist.strategy @idle_pattern {
  mesh @mesh ["tp"] [2]
  // expected-error @+1 {{pattern "layers.0.*" decides nothing, as later ones match all of its parameters, and the last one counts; remove it, or move it behind them}}
  shard "layers.0.*" as <[{"tp"}, {}]>
  shard "layers.*" as <[{}, {"tp"}]>
}
graph.param @layers.0.attn.wq : tensor<4x4xf32> init(#graph.fill<0.0>) key("wq")
graph.param @layers.1.attn.wq : tensor<4x4xf32> init(#graph.fill<0.0>) key("wq1")
