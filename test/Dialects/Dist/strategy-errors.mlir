// Every rule for strategies refuses what breaks it, and names the nearest valid choice.
// RUN: bowline-opt %s --verify-diagnostics --split-input-file

// expected-error @+1 {{needs a line 'mesh', for instance: mesh @mesh ["dp", "tp"] [2, 2]}}
dist.strategy @mesh {
  batch "dp"
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
  // expected-error @+1 {{takes axis "dp", which is that of 'dist.batch'}}
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
  // expected-error @+1 {{has 0 microbatches; the nearest valid number is 1}}
  schedule "1f1b" microbatches 0
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

// expected-error @+1 {{has more than 1048576 ranks}}
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
