// RUN: bowline-opt %s --split-input-file --verify-diagnostics

graph.func @f(%l: tensor<150xf32>, %t: tensor<3xf32>, %k: tensor<3xi32>, %p: tensor<3xf32>, %s: tensor<3x2xi32>, %n: tensor<3xi32>, %w: tensor<3xi32>) {
  // expected-error @+1 {{logits must have two dimensions, got 'tensor<150xf32>'}}
  %0:4 = graph.sample_tokens %l temperature %t top_k %k top_p %p seeds %s at %n wanted %w : (tensor<150xf32>, tensor<3xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3x2xi32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>, tensor<3xf32>, tensor<3x4xi32>, tensor<3x4xf32>)
  graph.return
}

// -----

graph.func @f(%l: tensor<3x50xf32>, %t: tensor<3xf32>, %k: tensor<4xi32>, %p: tensor<3xf32>, %s: tensor<3x2xi32>, %n: tensor<3xi32>, %w: tensor<3xi32>) {
  // expected-error @+1 {{needs one element for each of the 3 rows of logits, got 'tensor<4xi32>'}}
  %0:4 = graph.sample_tokens %l temperature %t top_k %k top_p %p seeds %s at %n wanted %w : (tensor<3x50xf32>, tensor<3xf32>, tensor<4xi32>, tensor<3xf32>, tensor<3x2xi32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>, tensor<3xf32>, tensor<3x4xi32>, tensor<3x4xf32>)
  graph.return
}

// -----

graph.func @f(%l: tensor<3x50xf32>, %t: tensor<3xf32>, %k: tensor<3xi32>, %p: tensor<3xf32>, %s: tensor<3x2xi32>, %n: tensor<3xi32>, %w: tensor<3xi32>) {
  // expected-error @+1 {{needs one element for each of the 3 rows of logits, got 'tensor<3x1xf32>'}}
  %0:4 = graph.sample_tokens %l temperature %t top_k %k top_p %p seeds %s at %n wanted %w : (tensor<3x50xf32>, tensor<3xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3x2xi32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>, tensor<3x1xf32>, tensor<3x4xi32>, tensor<3x4xf32>)
  graph.return
}

// -----

graph.func @f(%l: tensor<3x50xf32>, %t: tensor<3xf32>, %k: tensor<3xi32>, %p: tensor<3xf32>, %s: tensor<3xi32>, %n: tensor<3xi32>, %w: tensor<3xi32>) {
  // expected-error @+1 {{seeds must be two words for each of the 3 rows of logits, got 'tensor<3xi32>'}}
  %0:4 = graph.sample_tokens %l temperature %t top_k %k top_p %p seeds %s at %n wanted %w : (tensor<3x50xf32>, tensor<3xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>, tensor<3xf32>, tensor<3x4xi32>, tensor<3x4xf32>)
  graph.return
}

// -----

graph.func @f(%l: tensor<3x50xf32>, %t: tensor<3xf32>, %k: tensor<3xi32>, %p: tensor<3xf32>, %s: tensor<3x2xi32>, %n: tensor<3xi32>, %w: tensor<3xi32>) {
  // expected-error @+1 {{likely tokens and their logprobs must have two dimensions, equal ones, the first of 3, got 'tensor<3x4xi32>' and 'tensor<3x5xf32>'}}
  %0:4 = graph.sample_tokens %l temperature %t top_k %k top_p %p seeds %s at %n wanted %w : (tensor<3x50xf32>, tensor<3xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3x2xi32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>, tensor<3xf32>, tensor<3x4xi32>, tensor<3x5xf32>)
  graph.return
}

// -----

graph.func @f(%l: tensor<3x50xf32>, %t: tensor<3xf32>, %k: tensor<3xi32>, %p: tensor<3xf64>, %s: tensor<3x2xi32>, %n: tensor<3xi32>, %w: tensor<3xi32>) {
  // expected-error @+1 {{temperature, top_p and logprobs must have the logits' element type, got 'tensor<3xf64>'}}
  %0:4 = graph.sample_tokens %l temperature %t top_k %k top_p %p seeds %s at %n wanted %w : (tensor<3x50xf32>, tensor<3xf32>, tensor<3xi32>, tensor<3xf64>, tensor<3x2xi32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>, tensor<3xf32>, tensor<3x4xi32>, tensor<3x4xf32>)
  graph.return
}
