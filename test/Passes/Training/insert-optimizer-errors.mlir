// What cannot be trained is named, with its place.
// RUN: bowline-opt %s --insert-optimizer --verify-diagnostics --split-input-file

// Gradients come first.
// expected-error @+1 {{no graph.func @train_microbatch; run differentiate first}}
module {
  graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
}

// -----

// There is something to train.
// expected-error @+1 {{has no graph.param to train; declare one, or compile with --mode generate}}
module {
  graph.func @train_microbatch() {
    graph.return
  }
}

// -----

// Every parameter has a gradient.
// expected-error @+1 {{has no accumulator @w.grad; run differentiate first}}
graph.param @w : tensor<f32> init(#graph.fill<0.0>) key("w")
graph.func @train_microbatch() {
  graph.return
}

// -----

// Parameters are f32.
// expected-error @+1 {{has type 'tensor<2xbf16>', but the optimizer updates f32 only}}
graph.param @w : tensor<2xbf16> init(#graph.fill<0.0>) key("w")
graph.state @w.grad accumulator : tensor<2xbf16> init(#graph.fill<0.0>)
graph.func @train_microbatch() {
  graph.return
}
