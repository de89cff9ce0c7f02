// Every rule of the verifiers refuses what breaks it.
// RUN: bowline-opt %s --verify-diagnostics --split-input-file

// Every axis has a size.
// expected-error @+1 {{needs one size per axis, got 1 for 2}}
dist.mesh @mesh ["dp", "tp"] [1]

// -----

// An axis has a name.
// expected-error @+1 {{axis names must not be empty}}
dist.mesh @mesh ["dp", ""] [1, 1]

// -----

// Names differ.
// expected-error @+1 {{axis "tp" is named twice}}
dist.mesh @mesh ["tp", "dp", "tp"] [1, 2, 1]

// -----

// Sizes are positive.
// expected-error @+1 {{axis "tp" has size 0; the nearest valid one is 1}}
dist.mesh @mesh ["dp", "tp"] [1, 0]

// -----

// expected-error @+1 {{needs a shape of positive sizes in "dist.global_shape", not array<i64: 4, 0>}}
graph.param @w : tensor<4x4xf32> init(#graph.fill<0.0>) key("w") {dist.global_shape = array<i64: 4, 0>}

// -----

// expected-error @+1 {{needs a shape of positive sizes in "dist.view", not "4x4"}}
graph.param @w : tensor<4x4xf32> init(#graph.fill<0.0>) key("w") {dist.view = "4x4"}

// -----

// expected-error @+1 {{attribute 'dist.view' has 1 dimensions, but its variable is of type 'tensor<4x4xf32>'}}
graph.param @w : tensor<4x4xf32> init(#graph.fill<0.0>) key("w") {dist.view = array<i64: 16>}

// -----

// expected-error @+1 {{attribute 'dist.view' describes 16 elements, but 'dist.global_shape' has 15}}
graph.param @w : tensor<4x4xf32> init(#graph.fill<0.0>) key("w")
    {dist.global_shape = array<i64: 15>, dist.view = array<i64: 4, 4>}

// -----

// expected-error @+1 {{needs a shape of positive sizes in "dist.global_shape"}}
graph.param @w : tensor<4x4xf32> init(#graph.fill<0.0>) key("w")
    {dist.global_shape = 7 : i32, dist.view = array<i64: 4, 4>}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 3]
// expected-error @+1 {{is flat, but names no axes in dist.flat_axes}}
graph.param @w : tensor<8xf32> init(#graph.fill<0.0>) key("w") {dist.flat_shape = array<i64: 4, 4>}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 3]
// expected-error @+1 {{names axis "fsdp", but the mesh has "dp", "tp"}}
graph.param @w : tensor<8xf32> init(#graph.fill<0.0>) key("w")
    {dist.flat_shape = array<i64: 4, 4>, dist.flat_axes = ["fsdp"]}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 3]
// expected-error @+1 {{has type 'tensor<5xf32>', but a shard of 16 elements over 3 ranks has one dimension of 6}}
graph.param @w : tensor<5xf32> init(#graph.fill<0.0>) key("w")
    {dist.flat_shape = array<i64: 4, 4>, dist.flat_axes = ["tp"]}

// -----

dist.mesh @mesh ["dp", "tp"] [2, 3]
// expected-error @+1 {{has a sharding of 1 dimensions for 'tensor<4x4xf32>'}}
graph.param @w : tensor<6xf32> init(#graph.fill<0.0>) key("w")
    {dist.flat_shape = array<i64: 4, 4>, dist.flat_axes = ["tp"], dist.sharding = #dist.sharding<[{}]>}

// -----

// What is left open is last.
// expected-error @+1 {{expected '}' after '?'}}
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w") {dist.sharding = #dist.sharding<[{?, "dp"}]>}

// -----

// expected-error @+1 {{an axis name must not be empty}}
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w") {dist.sharding = #dist.sharding<[{""}]>}

// -----

// expected-error @+1 {{has a sharding for a value that is no ranked tensor}}
graph.func @f() attributes {dist.sharding = #dist.sharding<[]>} {
  graph.return
}
