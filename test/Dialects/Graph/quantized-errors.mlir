// RUN: bowline-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{has a format exactly where its elements are ui8, bytes of blocks}}
graph.param frozen @w : tensor<5x2x20xui8> init(#graph.fill<0.0>) key("w")

// -----

// expected-error @+1 {{has a format exactly where its elements are ui8, bytes of blocks}}
graph.param @w : tensor<5x40xf32> init(#graph.fill<0.0>) key("w") format("q4_1")

// -----

// expected-error @+1 {{is in blocks of bits, which nothing trains; make it 'frozen'}}
graph.param @w : tensor<5x2x20xui8> init(#graph.fill<0.0>) key("w") format("q4_1")

// -----

// expected-error @+1 {{there is no format 'q5_0' of blocks; use one of q8_0, q4_0, q4_1, q4_k, q6_k}}
graph.param frozen @w : tensor<5x2x22xui8> init(#graph.fill<0.0>) key("w") format("q5_0")

// -----

// expected-error @+1 {{a matrix of format 'q4_1' has three dimensions, the last one of 20 bytes, got 'tensor<5x2x18xui8>'}}
graph.param frozen @w : tensor<5x2x18xui8> init(#graph.fill<0.0>) key("w") format("q4_1")

// -----

graph.func @f(%x: tensor<3x60xf32>, %w: tensor<5x2x20xui8>) {
  // expected-error @+2 {{a row of the matrix has 64 elements, and so must have one of 'tensor<3x60xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = graph.quantized_dot %x, %w format "q4_1" : (tensor<3x60xf32>, tensor<5x2x20xui8>) -> tensor<3x5xf32>
  graph.return
}

// -----

graph.func @f(%ids: tensor<3xi32>, %w: tensor<5x2x20xui8>) {
  // expected-error @+1 {{gives rows of 64 elements, one for each index, not 'tensor<3x32xf32>'}}
  %y = graph.quantized_gather %w[%ids] format "q4_1" : (tensor<5x2x20xui8>, tensor<3xi32>) -> tensor<3x32xf32>
  graph.return
}
