// RUN: bowline-opt %s --split-input-file --verify-diagnostics

graph.func @f(%rows: tensor<4xi32>, %lengths: tensor<4xi32>) {
  // expected-error @+1 {{rows and lengths must have one dimension, and rows one element more, got 'tensor<4xi32>' and 'tensor<4xi32>'}}
  %0 = graph.sequence_positions %rows, %lengths : (tensor<4xi32>, tensor<4xi32>) -> tensor<6xi32>
  graph.return
}

// -----

graph.func @f(%rows: tensor<5xi32>, %lengths: tensor<4xi32>) {
  // expected-error @+1 {{positions must have one dimension, got 'tensor<2x3xi32>'}}
  %0 = graph.sequence_positions %rows, %lengths : (tensor<5xi32>, tensor<4xi32>) -> tensor<2x3xi32>
  graph.return
}

// -----

graph.func @f(%c: tensor<9x4x2x8xf32>, %v: tensor<6x3x8xf32>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{the cache must have four dimensions, and the values three that end as those, got 'tensor<9x4x2x8xf32>' and 'tensor<6x3x8xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.cache_write %c, %v at %r, %l, %b : (tensor<9x4x2x8xf32>, tensor<6x3x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  graph.return
}

// -----

graph.func @f(%c: tensor<9x4x2x8xf32>, %v: tensor<6x2x8xbf16>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{element types must agree, or the values be f32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.cache_write %c, %v at %r, %l, %b : (tensor<9x4x2x8xf32>, tensor<6x2x8xbf16>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  graph.return
}

// -----

graph.func @f(%c: tensor<9x4x2x8xf32>, %v: tensor<6x2x8xf32>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<2x5xi32>) {
  // expected-error @+2 {{blocks must have two dimensions, the first as long as lengths, got 'tensor<2x5xi32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.cache_write %c, %v at %r, %l, %b : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<2x5xi32>) -> tensor<9x4x2x8xf32>
  graph.return
}

// -----

graph.func @f(%c: tensor<9x4x2x8xf32>, %v: tensor<6x2x8xf32>, %r: tensor<3xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{rows and lengths must have one dimension, and rows one element more, got 'tensor<3xi32>' and 'tensor<3xi32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.cache_write %c, %v at %r, %l, %b : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  graph.return
}

// -----

graph.func @f(%q: tensor<6x4x6xf32>, %k: tensor<9x4x2x8xf32>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{the query must have three dimensions, and keys four, with equal last ones, got 'tensor<6x4x6xf32>' and 'tensor<9x4x2x8xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.paged_attention %q, %k, %k at %r, %l, %b scale 1.0 : (tensor<6x4x6xf32>, tensor<9x4x2x8xf32>, tensor<9x4x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<6x4x6xf32>
  graph.return
}

// -----

graph.func @f(%q: tensor<6x3x8xf32>, %k: tensor<9x4x2x8xf32>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{the number of query heads 3 must be a multiple of the number of key heads 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.paged_attention %q, %k, %k at %r, %l, %b scale 1.0 : (tensor<6x3x8xf32>, tensor<9x4x2x8xf32>, tensor<9x4x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<6x3x8xf32>
  graph.return
}

// -----

graph.func @f(%q: tensor<6x4x8xf32>, %k: tensor<9x4x2x8xf32>, %v: tensor<9x4x2x8xbf16>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{keys and values must have equal types, got 'tensor<9x4x2x8xf32>' and 'tensor<9x4x2x8xbf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.paged_attention %q, %k, %v at %r, %l, %b scale 1.0 : (tensor<6x4x8xf32>, tensor<9x4x2x8xf32>, tensor<9x4x2x8xbf16>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<6x4x8xf32>
  graph.return
}

// -----

graph.func @f(%q: tensor<6x4x8xbf16>, %k: tensor<9x4x2x8xf32>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{element types must agree, or the query be f32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.paged_attention %q, %k, %k at %r, %l, %b scale 1.0 : (tensor<6x4x8xbf16>, tensor<9x4x2x8xf32>, tensor<9x4x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<6x4x8xbf16>
  graph.return
}

// -----

graph.func @f(%q: tensor<6x4x8xf32>, %k: tensor<9x4x2x8xf32>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{a window must have at least one key, got -1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.paged_attention window -1 %q, %k, %k at %r, %l, %b scale 1.0 : (tensor<6x4x8xf32>, tensor<9x4x2x8xf32>, tensor<9x4x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<6x4x8xf32>
  graph.return
}

// -----

graph.func @f(%c: tensor<9x4x2x12xui8>, %v: tensor<6x2x8xf32>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{there is no format 'int4' of rows; use "int8"}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.cache_write %c, %v at %r, %l, %b format "int4" : (tensor<9x4x2x12xui8>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x12xui8>
  graph.return
}

// -----

graph.func @f(%c: tensor<9x4x2x12xui8>, %v: tensor<6x2x8xf32>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{a cache of ui8 has a format of rows, and no other one, got 'tensor<9x4x2x12xui8>' without a format}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.cache_write %c, %v at %r, %l, %b : (tensor<9x4x2x12xui8>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x12xui8>
  graph.return
}

// -----

graph.func @f(%c: tensor<9x4x2x8xf32>, %v: tensor<6x2x8xf32>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{a cache of ui8 has a format of rows, and no other one, got 'tensor<9x4x2x8xf32>' with a format}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.cache_write %c, %v at %r, %l, %b format "int8" : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  graph.return
}

// -----

graph.func @f(%c: tensor<9x4x2x4xui8>, %v: tensor<6x2x8xf32>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{a row of format 'int8' has 4 bytes of a scale, and elements behind it, got 'tensor<9x4x2x4xui8>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.cache_write %c, %v at %r, %l, %b format "int8" : (tensor<9x4x2x4xui8>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x4xui8>
  graph.return
}

// -----

graph.func @f(%c: tensor<9x4x2x8xui8>, %v: tensor<6x2x8xf32>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{the cache must have four dimensions, and the values three that end as those, got 'tensor<9x4x2x8xui8>' and 'tensor<6x2x8xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.cache_write %c, %v at %r, %l, %b format "int8" : (tensor<9x4x2x8xui8>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xui8>
  graph.return
}

// -----

graph.func @f(%q: tensor<6x4x8xf32>, %k: tensor<9x4x2x8xui8>, %r: tensor<4xi32>, %l: tensor<3xi32>, %b: tensor<3x5xi32>) {
  // expected-error @+2 {{the query must have three dimensions, and keys four, with equal last ones, got 'tensor<6x4x8xf32>' and 'tensor<9x4x2x8xui8>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = graph.paged_attention %q, %k, %k at %r, %l, %b scale 1.0 format "int8" : (tensor<6x4x8xf32>, tensor<9x4x2x8xui8>, tensor<9x4x2x8xui8>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<6x4x8xf32>
  graph.return
}

// -----

// expected-error @+1 {{a weight serves all requests, and no request writes it}}
graph.state @c cache|weight : tensor<2xf32> init(#graph.fill<0.0>)

// -----

// expected-error @+1 {{has "plan.sequences" = 3 : i64; it must be a #plan.sequences}}
graph.func @f() attributes {plan.sequences = 3 : i64} {
  graph.return
}

// -----

// expected-error @+1 {{a step has at least one token, as a block has, and there are at least two blocks; got 4, 4 and 1}}
graph.func @f() attributes {plan.sequences = #plan.sequences<rows = "r", lengths = "l", blocks = "b", tokens = 4, block_tokens = 4, block_count = 1>} {
  graph.return
}
