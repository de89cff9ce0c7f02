// Dimensions that cannot be padded are refused, with what is in the way and the nearest sizes.
// RUN: bowline-opt %s --pad-for-divisibility --verify-diagnostics --split-input-file

dist.mesh @mesh ["tp"] [4]
// expected-error @+1 {{'norm': dimension 0 of 6 does not divide over the 4 ranks along "tp" and cannot be padded, because graph.rms_norm needs it whole; the nearest valid sizes are 4 and 8}}
graph.param @norm : tensor<6xf32> init(#graph.fill<1.0>) key("norm") {dist.sharding = #dist.sharding<[{"tp"}]>}
graph.func @f(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  %norm = graph.read @norm : tensor<6xf32>
  %0 = graph.rms_norm %x, %norm eps 1.0e-5 : (tensor<2x6xf32>, tensor<6xf32>) -> tensor<2x6xf32>
  graph.return %0 : tensor<2x6xf32>
}

// -----

dist.mesh @mesh ["tp/0", "tp/1"] [2, 2]
// expected-error @+1 {{'w': dimension 0 of 3 does not divide over the 4 ranks along "tp" and cannot be padded, because argument 'x' of @f has it; the nearest valid size is 4}}
graph.param @w : tensor<3xf32> init(#graph.fill<1.0>) key("w") {dist.sharding = #dist.sharding<[{"tp/0", "tp/1"}]>}
graph.func @f(%x: tensor<3xf32> {graph.name = "x"}) -> tensor<3xf32> {
  %w = graph.read @w : tensor<3xf32>
  %0 = arith.addf %x, %w : tensor<3xf32>
  graph.return %0 : tensor<3xf32>
}

// -----

// Heads are no columns like others.
dist.mesh @mesh ["dp", "tp"] [2, 4]
// expected-error @+1 {{'wq': dimension 0 of 6 does not divide over the 8 ranks along "dp", "tp" and cannot be padded, because graph.reshape at q_proj divides it into several dimensions; the nearest valid size is 8}}
graph.param @wq : tensor<6x4xf32> init(#graph.fill<1.0>) key("wq") {dist.sharding = #dist.sharding<[{"dp", "tp"}, {}]>}
graph.func @f(%x: tensor<2x4xf32>) -> tensor<2x3x2xf32> {
  %wq = graph.read @wq : tensor<6x4xf32>
  %0 = graph.dot_general %x, %wq contract [1] x [1] : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<2x6xf32>
  %1 = graph.reshape %0 : (tensor<2x6xf32>) -> tensor<2x3x2xf32> loc("q_proj")
  graph.return %1 : tensor<2x3x2xf32>
}

// -----

// A table of positions is used from its beginning to the last position.
dist.mesh @mesh ["tp"] [4]
// expected-error @+1 {{because graph.slice needs it whole; the nearest valid sizes are 4 and 8}}
graph.param @positions : tensor<7x4xf32> init(#graph.fill<1.0>) key("positions") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.func @f() -> tensor<5x4xf32> {
  %positions = graph.read @positions : tensor<7x4xf32>
  %0 = graph.slice %positions at [0, 0] sizes [5, 4] : (tensor<7x4xf32>) -> tensor<5x4xf32>
  graph.return %0 : tensor<5x4xf32>
}

// -----

// The zeros of a shard follow from the axes of its own variable.
dist.mesh @mesh ["dp", "tp"] [2, 2]
graph.param @up : tensor<5x4xf32> init(#graph.fill<1.0>) key("up") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
// expected-error @+1 {{'down': dimension 1 of 5 is whole on every rank, and 6 where the sharding of other parameters pads it: a plan pads a tensor for its own axes alone; shard all that have this dimension along the same axes, or take a number of ranks that divides 5}}
graph.param @down : tensor<4x5xf32> init(#graph.fill<1.0>) key("down") {dist.sharding = #dist.sharding<[{"dp"}, {}]>}
graph.func @f(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %up = graph.read @up : tensor<5x4xf32>
  %0 = graph.dot_general %x, %up contract [1] x [1] : (tensor<2x4xf32>, tensor<5x4xf32>) -> tensor<2x5xf32>
  %down = graph.read @down : tensor<4x5xf32>
  %1 = graph.dot_general %0, %down contract [1] x [1] : (tensor<2x5xf32>, tensor<4x5xf32>) -> tensor<2x4xf32>
  graph.return %1 : tensor<2x4xf32>
}

// -----

dist.mesh @mesh ["dp", "tp"] [4, 2]
// expected-error @+1 {{'up': dimension 0 of 5 is sharded along "tp", and 8 where}}
graph.param @up : tensor<5x4xf32> init(#graph.fill<1.0>) key("up") {dist.sharding = #dist.sharding<[{"tp"}, {}]>}
graph.param @down : tensor<4x5xf32> init(#graph.fill<1.0>) key("down") {dist.sharding = #dist.sharding<[{}, {"dp"}]>}
graph.func @f(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %up = graph.read @up : tensor<5x4xf32>
  %0 = graph.dot_general %x, %up contract [1] x [1] : (tensor<2x4xf32>, tensor<5x4xf32>) -> tensor<2x5xf32>
  %down = graph.read @down : tensor<4x5xf32>
  %1 = graph.dot_general %0, %down contract [1] x [1] : (tensor<2x5xf32>, tensor<4x5xf32>) -> tensor<2x4xf32>
  graph.return %1 : tensor<2x4xf32>
}

// -----

dist.mesh @mesh ["a", "b"] [2, 3]
// expected-error @+1 {{'x': dimension 0 of 7 is sharded along "a", and 12 where}}
graph.param @x : tensor<7xf32> init(#graph.fill<0.0>) key("x") {dist.sharding = #dist.sharding<[{"a"}]>}
graph.param @y : tensor<7xf32> init(#graph.fill<0.0>) key("y") {dist.sharding = #dist.sharding<[{"b"}]>}
graph.func @both() {
  %x = graph.read @x : tensor<7xf32>
  graph.write @y, %x : tensor<7xf32>
  graph.return
}
