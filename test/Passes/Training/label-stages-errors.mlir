// What would make stages wait for each other, or compute with what they do not have, is refused.
// RUN: bowline-opt %s --label-stages --verify-diagnostics --split-input-file

module attributes {stage.count = 3 : i64} {
  graph.func @f(%x: tensor<4xf32>) {
    %0 = stage.transfer %x from 0 to 1 : tensor<4xf32>
    %1 = stage.transfer %0 from 1 to 2 : tensor<4xf32>
    // expected-error @+1 {{has operand 0 in stage 2 and operand 1 in stage 1; a stage.transfer from 1 to 2 is missing}}
    %2 = arith.addf %1, %0 : tensor<4xf32>
    graph.return
  }
}

// -----

module attributes {stage.count = 3 : i64} {
  graph.func @f(%x: tensor<4xf32>) {
    %0 = stage.transfer %x from 0 to 1 : tensor<4xf32>
    // expected-error @+1 {{takes operand 0 from stage 0, but it is a value of stage 1}}
    %1 = stage.transfer %0 from 0 to 2 : tensor<4xf32>
    graph.return
  }
}

// -----

module attributes {stage.count = 2 : i64} {
  graph.state @s saved : tensor<4xf32> init(#graph.fill<0.0>)
  graph.func @f(%x: tensor<4xf32>) {
    %0 = stage.transfer %x from 0 to 1 : tensor<4xf32>
    graph.write @s, %0 : tensor<4xf32>
    %1 = stage.transfer %0 from 1 to 0 : tensor<4xf32>
    // expected-error @+1 {{writes a value of stage 0 to @s, which is in stage 1; a stage.transfer from 0 to 1 is missing}}
    graph.write @s, %1 : tensor<4xf32>
    graph.return
  }
}

// -----

module attributes {stage.count = 2 : i64} {
  graph.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stage.transfer %x from 0 to 1 : tensor<4xf32>
    // expected-error @+1 {{returns as result 0 a 'tensor<4xf32>' of stage 1; only scalars go from one stage to all callers}}
    graph.return %0 : tensor<4xf32>
  }
}

// -----

// A parameter of two stages.
module attributes {stage.count = 2 : i64} {
  graph.param @w : tensor<4xf32> init(#graph.fill<1.0>) key("w")
  graph.func loss @loss(%x: tensor<4xf32>) -> tensor<f32> {
    // expected-error @+1 {{depends on parameter 'w' and is needed in stages 0 and 1; the later one needs a mirror}}
    %w = graph.read @w : tensor<4xf32>
    %0 = arith.mulf %x, %w : tensor<4xf32>
    %1 = stage.transfer %0 from 0 to 1 : tensor<4xf32>
    %2 = arith.mulf %1, %w : tensor<4xf32>
    %3 = graph.reduce sum %2 dims [0] : (tensor<4xf32>) -> tensor<f32>
    graph.return %3 : tensor<f32>
  }
}

// -----

// An activation that goes another way.
module attributes {stage.count = 2 : i64} {
  graph.param @w : tensor<4xf32> init(#graph.fill<1.0>) key("w")
  graph.func loss @loss(%x: tensor<4xf32>) -> tensor<f32> {
    %w = graph.read @w : tensor<4xf32>
    // expected-error @+1 {{depends on parameter 'w' and is needed in stages 0 and 1; a stage.transfer from 0 to 1 is missing}}
    %0 = arith.mulf %x, %w : tensor<4xf32>
    %1 = arith.negf %0 : tensor<4xf32>
    %2 = stage.transfer %1 from 0 to 1 : tensor<4xf32>
    %3 = arith.mulf %2, %0 : tensor<4xf32>
    %4 = graph.reduce sum %3 dims [0] : (tensor<4xf32>) -> tensor<f32>
    graph.return %4 : tensor<f32>
  }
}

// -----

module attributes {stage.count = 3 : i64} {
  graph.state @s accumulator : tensor<4xf32> init(#graph.fill<0.0>)
  graph.func microbatch @train_microbatch(%x: tensor<4xf32>) {
    // expected-error @+1 {{goes from stage 0 to 2 in the forward pass of a microbatch, where a stage sends values only to the next stage}}
    %0 = stage.transfer %x from 0 to 2 : tensor<4xf32>
    graph.write @s, %0 : tensor<4xf32>
    graph.return
  }
}

// -----

module attributes {stage.count = 3 : i64} {
  graph.param @s : tensor<4xf32> init(#graph.fill<0.0>) key("s")
  graph.state @s.grad accumulator of @s : tensor<4xf32> init(#graph.fill<0.0>)
  graph.func microbatch @train_microbatch(%x: tensor<4xf32>) {
    // expected-error @+1 {{goes from stage 0 to 1 in the backward pass of a microbatch, where a stage sends values only to the previous stage}}
    %0 = stage.transfer %x from 0 to 1 : tensor<4xf32>
    graph.write @s.grad, %0 : tensor<4xf32>
    graph.return
  }
}

// -----

// Scalars of two stages are combined once per step, not per microbatch.
module attributes {stage.count = 3 : i64} {
  graph.state @s accumulator : tensor<f32> init(#graph.fill<0.0>)
  graph.func microbatch @train_microbatch(%x: tensor<f32>) {
    %0 = stage.transfer %x from 0 to 1 : tensor<f32>
    %1 = stage.transfer %0 from 1 to 2 : tensor<f32>
    // expected-error @+1 {{has operand 0 in stage 1 and operand 1 in stage 2; a stage.transfer from 1 to 2 is missing}}
    %2 = arith.addf %0, %1 : tensor<f32>
    graph.write @s, %2 : tensor<f32>
    graph.return
  }
}

// -----

module attributes {stage.count = 2 : i64} {
  graph.func microbatch @train_microbatch(%x: tensor<f32>) {
    // expected-error @+1 {{must not run per microbatch: all stages would wait for each other}}
    %0 = stage.sum %x from [0] : tensor<f32>
    graph.return
  }
}
