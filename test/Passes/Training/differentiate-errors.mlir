// What cannot be differentiated is named, with its place.
// RUN: bowline-opt %s --differentiate --verify-diagnostics --split-input-file

// There must be a loss.
// expected-error @+1 {{no function to differentiate: mark one as the loss, 'graph.func loss @name'}}
module {
  graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
}

// -----

// The loss comes with the number of its positions.
graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
// expected-error @+1 {{must return two tensor<f32>: the summed loss and the number of positions}}
graph.func loss @loss() -> tensor<f32> {
  %w = graph.read @w : tensor<f32>
  graph.return %w : tensor<f32>
}

// -----

// The loss is one number.
graph.param @w : tensor<2xf32> init(#graph.fill<0.0>) key("w")
// expected-error @+1 {{must return two tensor<f32>}}
graph.func loss @loss() -> (tensor<2xf32>, tensor<f32>) {
  %w = graph.read @w : tensor<2xf32>
  %count = arith.constant dense<1.0> : tensor<f32>
  graph.return %w, %count : tensor<2xf32>, tensor<f32>
}

// -----

// A model without parameters has nothing to learn.
// expected-error @+1 {{has no graph.param to train; declare one that is not frozen, or compile with --mode generate}}
module {
  graph.func loss @loss(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    graph.return %x, %x : tensor<f32>, tensor<f32>
  }
}

// -----

// Nor has one whose parameters are all frozen.
// expected-error @+1 {{has no graph.param to train; declare one that is not frozen, or compile with --mode generate}}
module {
  graph.param frozen @w : tensor<f32> init(#graph.fill<0.0>) key("w")
  graph.func loss @loss() -> (tensor<f32>, tensor<f32>) {
    %w = graph.read @w : tensor<f32>
    graph.return %w, %w : tensor<f32>, tensor<f32>
  }
}

// -----

// A parameter that nobody reads is a mistake.
graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
// expected-error @+1 {{has no influence on the loss; remove it, make it 'frozen', or make the loss use it}}
graph.param @unused : tensor<f32> init(#graph.fill<0.0>) key("unused")
graph.func loss @loss() -> (tensor<f32>, tensor<f32>) {
  %w = graph.read @w : tensor<f32>
  graph.return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// So is one that is read in vain: no gradient comes through the comparison of integers.
// expected-error @+1 {{has no influence on the loss; remove it, make it 'frozen', or make the loss use it}}
graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
graph.func loss @loss() -> (tensor<f32>, tensor<f32>) {
  %w = graph.read @w : tensor<f32>
  %integer = arith.fptosi %w : tensor<f32> to tensor<i32>
  %x = arith.sitofp %integer : tensor<i32> to tensor<f32>
  graph.return %x, %x : tensor<f32>, tensor<f32>
}

// -----

// An operation on the way has a derivative.
graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
graph.func loss @loss() -> (tensor<f32>, tensor<f32>) {
  %w = graph.read @w : tensor<f32>
  // expected-error @+1 {{'math.ceil' op is not differentiable, but the loss depends on a parameter through it}}
  %x = math.ceil %w : tensor<f32>
  graph.return %x, %x : tensor<f32>, tensor<f32>
}

// -----

// The parts that are built are not there.
graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
graph.func loss @loss() -> (tensor<f32>, tensor<f32>) {
  %w = graph.read @w : tensor<f32>
  graph.return %w, %w : tensor<f32>, tensor<f32>
}
// expected-error @+1 {{is the part 'microbatch' of a training step, which differentiate builds; remove that word}}
graph.func microbatch @train_microbatch() {
  graph.return
}
