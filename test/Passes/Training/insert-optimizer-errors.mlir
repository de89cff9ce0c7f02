// What cannot be trained is named, with its place.
// RUN: bowline-opt %s --insert-optimizer --verify-diagnostics --split-input-file

// Gradients come first.
// expected-error @+1 {{no function is the part 'microbatch' of a training step; run differentiate first}}
module {
  graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
}

// -----

// There is something to train.
// expected-error @+1 {{has no graph.param to train; declare one that is not frozen, or compile with --mode generate}}
module {
  graph.func microbatch @train_microbatch() {
    graph.return
  }
}

// -----

// Every parameter has a gradient.
// expected-error @+1 {{has no accumulator of its gradient; run differentiate first}}
graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
graph.func microbatch @train_microbatch() {
  graph.return
}

// -----

// A mirror that is trained has an owner, which is updated.
// expected-error @+1 {{is a mirror of @v, which is not there, so that nothing would update it; add a graph.param}}
graph.param @w : tensor<2xf32> init(#graph.fill<0.0>) key("w") mirror_of @v
graph.state @w.grad accumulator of @w : tensor<2xf32> init(#graph.fill<0.0>)
graph.func microbatch @train_microbatch() {
  graph.return
}

// -----

// Parameters are f32.
// expected-error @+1 {{has type 'tensor<2xbf16>', but the optimizer updates f32 only}}
graph.param @w : tensor<2xbf16> init(#graph.fill<0.0>) key("w")
graph.state @w.grad accumulator of @w : tensor<2xbf16> init(#graph.fill<0.0>)
graph.func microbatch @train_microbatch() {
  graph.return
}
