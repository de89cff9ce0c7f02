// Every rule for strategies refuses what breaks it, and names the nearest valid choice.
// RUN: bowline-opt %s --verify-diagnostics --split-input-file

dist.strategy @mesh {
  // expected-error @+1 {{is about several ranks, and the strategy has none; add a mesh of N ranks, --mesh dp=N, or in a file: mesh @mesh ["dp"] [N]}}
  batch "dp"
}

// -----

dist.strategy @unknown {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{'dist.recomputes' is unknown; the nearest is 'recompute'}}
  recomputes "full"
}

// -----

dist.strategy @beginning {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{'dist.sequence' is unknown; the nearest is 'sequence_parallel'}}
  sequence "tp"
}

// -----

dist.strategy @nothing_near {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{custom op 'dist.dtype' is unknown; the lines of a strategy are batch, bucket_bytes, mesh, microbatches, overlap_chunks, recompute, schedule, sequence_parallel, shard, stages, tensor_parallel, zero}}
  dtype "bf16"
}

// -----

dist.strategy @axis {
  mesh @mesh ["pp", "dp", "tp"] [2, 2, 2]
  // expected-error @+1 {{names axis "ddp", which the mesh does not have; the nearest is "dp"}}
  batch "ddp"
}

// -----

dist.strategy @second_axis {
  mesh @mesh ["pp", "dp", "tp"] [2, 2, 2]
  // expected-error @+1 {{names axis "ttp", which the mesh does not have; the nearest is "tp"}}
  batch "dp", "ttp"
}

// -----

dist.strategy @axis_twice {
  mesh @mesh ["pp", "dp", "tp"] [2, 2, 2]
  // expected-error @+1 {{names axis "dp" twice; remove one}}
  batch "dp", "dp"
}

// -----

dist.strategy @batch_without_axis {
  mesh @mesh ["pp", "dp", "tp"] [2, 2, 2]
  // expected-error @+1 {{names no axis}}
  "dist.batch"() {axes = []} : () -> ()
}

// -----

dist.strategy @axis_of_pattern {
  mesh @mesh ["data", "model"] [2, 2]
  // expected-error @+1 {{names axis "modle", which the mesh does not have; the nearest is "model"}}
  shard "*" as <[{}, {"modle"}]>
}

// -----

dist.strategy @axis_of_zero {
  mesh @mesh ["data", "model"] [2, 2]
  // expected-error @+1 {{names axis "dat", which the mesh does not have; the nearest is "data"}}
  zero level 1 axis "dat"
}

// -----

dist.strategy @no_axis {
  mesh @mesh [] []
  // expected-error @+1 {{names axis "tp", which the mesh does not have}}
  sequence_parallel "tp"
}

// -----

dist.strategy @twice {
  mesh @mesh ["dp"] [2]
  // expected-note @+1 {{the other one}}
  batch "dp"
  // expected-error @+1 {{appears twice in one strategy; remove one}}
  batch "dp"
}

// -----

dist.strategy @two_meshes {
  // expected-note @+1 {{the other one}}
  mesh @a ["dp"] [2]
  // expected-error @+1 {{appears twice in one strategy; remove one}}
  mesh @b ["dp"] [2]
}

// -----

dist.strategy @one_axis_two_roles {
  mesh @mesh ["dp", "tp"] [2, 2]
  batch "dp"
  // expected-error @+1 {{takes axis "dp", which 'dist.batch' takes too}}
  stages "dp"
}

// -----

dist.strategy @line {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{is no line of a strategy}}
  graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
}

// -----

// expected-error @+1 {{expects parent op 'dist.strategy'}}
dist.batch "dp"

// -----

dist.strategy @pattern {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{has the pattern "layers.{q,k": }}
  shard "layers.{q,k" as <[{}]>
}

// -----

dist.strategy @too_many_words {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{has the pattern}}
  shard "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}" as <[{}]>
}

// -----

dist.strategy @unreduced {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{has unreduced axes; a parameter is a value, not a sum of parts}}
  shard "*" as <[{}], unreduced = {"dp"}>
}

// -----

dist.strategy @microbatches {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{has the number 0; the nearest valid one is 1}}
  microbatches 0
}

// -----

dist.strategy @level {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{has level 4; the nearest of 0 to 3 is 3}}
  zero level 4
}

// -----

dist.strategy @recompute {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{has "selectiv"; the nearest of none, selective, full and auto is "selective"}}
  recompute "selectiv"
}

// -----

dist.strategy @axis_of_nothing {
  mesh @mesh ["dp", "tp"] [2, 2]
  // expected-error @+1 {{names axis "tp" with level 0, which divides nothing along it; remove it, or use level 1, 2 or 3}}
  zero level 0 axis "tp"
}

// -----

dist.strategy @prefetch {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{prefetches with level 2, which gathers no parameters ahead of use; remove it, or use level 3}}
  zero level 2 prefetch 1
}

// -----

dist.strategy @once {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{gathers once with level 2, which gathers no parameters; remove it, or use level 3}}
  zero level 2 once
}

// -----

dist.strategy @each {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{gathers for each microbatch with level 2, which gathers no parameters; remove it, or use level 3}}
  zero level 2 each
}

// -----

dist.strategy @once_and_each {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{gathers once and for each microbatch; remove 'once' or 'each'}}
  zero level 3 once each
}

// -----

dist.strategy @negative_prefetch {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{prefetches -1 gathers ahead of use; the nearest valid number is 0}}
  zero level 3 prefetch -1
}

// -----

dist.strategy @bucket_bytes {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{has the number -1; the nearest valid one is 0}}
  bucket_bytes -1
}

// -----

dist.strategy @overlap_chunks {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{has the number 0; the nearest valid choices are 1 and auto}}
  overlap_chunks 0
}

// -----

dist.strategy @table_without_name {
  mesh @mesh ["pp"] [2]
  // expected-error @+1 {{has a table, but "1f1b" is a schedule of its own; a table has a name that ends with .csv}}
  schedule "1f1b" table "F0"
}

// -----

// expected-error @+1 {{axis "dp" has size 4611686018427387904; the nearest valid one is 262144, for 1048576 ranks in all}}
dist.mesh @large ["dp", "tp"] [4611686018427387904, 4]

// -----

// Shardings fit what they are on.
// expected-error @+1 {{has a sharding of 1 dimensions for 'tensor<4x4xf32>'}}
graph.param @w : tensor<4x4xf32> init(#graph.fill<0.0>) key("w") {dist.sharding = #dist.sharding<[{"dp"}]>}

// -----

// expected-error @+1 {{has "dp" where a #dist.sharding must be}}
graph.param @w : tensor<4x4xf32> init(#graph.fill<0.0>) key("w") {dist.sharding = "dp"}

// -----

// expected-error @+1 {{has a sharding of 2 dimensions for 'tensor<4xi32>'}}
graph.func @argument(%x: tensor<4xi32> {dist.sharding = #dist.sharding<[{"dp"}, {}]>}) {
  graph.return
}

// -----

graph.func @results(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{needs one sharding per result in dist.shardings}}
  %0 = arith.addf %x, %x {dist.shardings = []} : tensor<4xf32>
  graph.return %0 : tensor<4xf32>
}

// -----

graph.func @result(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has a sharding of 0 dimensions for 'tensor<4xf32>'}}
  %0 = arith.addf %x, %x {dist.shardings = [#dist.sharding<[]>]} : tensor<4xf32>
  graph.return %0 : tensor<4xf32>
}
