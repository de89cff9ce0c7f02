// Every rule of the verifiers refuses what breaks it.
// RUN: bowline-opt %s --verify-diagnostics --split-input-file

graph.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{from 1 to itself; use its operand instead}}
  %0 = stage.transfer %x from 1 to 1 : tensor<4xf32>
  graph.return
}

// -----

graph.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{to stage -1, but stages are counted from 0}}
  %0 = stage.transfer %x from 0 to -1 : tensor<4xf32>
  graph.return
}

// -----

module attributes {stage.count = 2 : i64} {
  graph.func @f(%x: tensor<4xf32>) {
    // expected-error @+1 {{from stage 2, but stages are counted from 0 to 1}}
    %0 = stage.transfer %x from 2 to 1 : tensor<4xf32>
    graph.return
  }
}

// -----

graph.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{needs one stage per operand, and at least one: got 1 for 2}}
  %0 = stage.sum %x, %x from [0] : tensor<f32>
  graph.return
}

// -----

graph.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{has an operand of stage 0 behind 1; stages must be ascending}}
  %0 = stage.sum %x, %x from [1, 0] : tensor<f32>
  graph.return
}

// -----

graph.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{must be variadic of tensor<f32> or tensor<f64>}}
  %0 = stage.sum %x, %x from [0, 1] : tensor<4xf32>
  graph.return
}

// -----

module attributes {stage.count = 2 : i64} {
  graph.func @f(%x: tensor<f32>) {
    // expected-error @+1 {{from stage 2, but stages are counted from 0 to 1}}
    %0 = stage.broadcast %x from 2 : tensor<f32>
    graph.return
  }
}

// -----

// expected-error @+1 {{has stage.count = 0 : i64; it must be on the module, and an i64 of 1 or more}}
module attributes {stage.count = 0 : i64} {
}

// -----

// expected-error @+1 {{has stage.count = 2 : i64; it must be on the module}}
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w") {stage.count = 2 : i64}

// -----

// expected-error @+1 {{has stage.index = 1 : i64; it must be a list of stages}}
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w") {stage.index = 1 : i64}

// -----

// expected-error @+1 {{stage.index has 1 behind 1; stages must be ascending}}
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w") {stage.index = array<i64: 1, 1>}

// -----

module attributes {stage.count = 2 : i64} {
  // expected-error @+1 {{stage.index has 2, but stages are counted from 0 to 1}}
  graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w") {stage.index = array<i64: 0, 2>}
}

// -----

// expected-error @+1 {{has stage.phase = "sideward"; it must be "forward", "backward" or "both"}}
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w") {stage.phase = "sideward"}

// -----

// expected-error @+1 {{has stage.indx, which the stage dialect does not know}}
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w") {stage.indx = array<i64: 0>}

// -----

graph.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{names rank -1 of the pipeline; the nearest valid one is 0}}
  stage.send %x to -1 channel "c" : tensor<4xf32>
  graph.return
}

// -----

graph.func @f() {
  // expected-error @+1 {{needs a channel with a name}}
  %0 = stage.receive from 0 channel "" : tensor<4xf32>
  graph.return
}

// -----

graph.func @f() {
  // expected-error @+1 {{needs at least one tensor}}
  "stage.send"() <{to = 0 : i64, channel = "c"}> : () -> ()
  graph.return
}

// -----

// expected-error @+1 {{has stage.axis = ""; it must be on the module, and the name of an axis of the mesh}}
module attributes {stage.axis = ""} {
}

// -----

// Each stage has its passes.
graph.func forward @f() attributes {stage.index = array<i64: 0>} {
  graph.return
}
graph.func forward @g() attributes {stage.index = array<i64: 1>} {
  graph.return
}
// expected-error @+1 {{is the part 'forward' of its stage, as @g already is; a stage has at most one function of each part}}
graph.func forward @h() attributes {stage.index = array<i64: 1>} {
  graph.return
}
