// A strategy has no attribute that nothing reads: whatever stands in braces, and whatever the generic form adds.
// RUN: bowline-opt %s --verify-diagnostics --split-input-file

// expected-error @+1 {{custom op 'dist.strategy' has attribute 'layers' in braces, where nothing reads it; remove it}}
dist.strategy @strategy attributes {layers = "0"} {
  mesh @mesh ["dp"] [2]
}

// -----

// expected-error @+1 {{'dist.strategy' op has attribute 'layers', which nothing reads; remove it: its attributes are sym_name}}
"dist.strategy"() <{sym_name = "strategy"}> ({
  dist.mesh @mesh ["dp"] [2]
}) {layers = "0"} : () -> ()

// -----

dist.strategy @mesh {
  // expected-error @+1 {{custom op 'dist.mesh' has attribute 'foo' in braces, where nothing reads it; remove it}}
  mesh @mesh ["dp"] [2] {foo = 1}
}

// -----

// expected-error @+1 {{'dist.mesh' op has attribute 'foo', which nothing reads; remove it: its attributes are axis_names, axis_sizes, sym_name}}
"dist.mesh"() <{sym_name = "mesh", axis_names = ["dp"], axis_sizes = array<i64: 2>}> {foo = 1} : () -> ()

// -----

dist.strategy @batch {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{'dist.batch' has attribute 'foo' in braces}}
  batch "dp" {foo}
}

// -----

dist.strategy @tensor_parallel {
  mesh @mesh ["tp"] [2]
  // expected-error @+1 {{'dist.tensor_parallel' has attribute 'foo' in braces}}
  tensor_parallel "tp" {foo}
}

// -----

dist.strategy @shard {
  mesh @mesh ["tp"] [2]
  // expected-error @+1 {{'dist.shard' has attribute 'foo' in braces}}
  shard "*" as <[{"tp"}]> {foo}
}

// -----

dist.strategy @zero {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{'dist.zero' has attribute 'extra' in braces}}
  zero level 1 axis "dp" {extra = 3}
}

// -----

dist.strategy @sequence_parallel {
  mesh @mesh ["tp"] [2]
  // expected-error @+1 {{'dist.sequence_parallel' has attribute 'foo' in braces}}
  sequence_parallel "tp" {foo}
}

// -----

dist.strategy @microbatches {
  // expected-error @+1 {{'dist.microbatches' has attribute 'foo' in braces}}
  microbatches 3 {foo = 1}
}

// -----

dist.strategy @stages {
  mesh @mesh ["pp"] [2]
  // expected-error @+1 {{'dist.stages' has attribute 'foo' in braces}}
  stages "pp" split "[0],[1]" {foo}
}

// -----

dist.strategy @schedule {
  mesh @mesh ["pp"] [2]
  // expected-error @+1 {{'dist.schedule' has attribute 'virtual' in braces}}
  schedule "1f1b" {virtual = 2}
}

// -----

// An attribute that the operation does have would replace what its line says.
dist.strategy @said_twice {
  mesh @mesh ["pp"] [2]
  // expected-error @+1 {{'dist.schedule' has attribute 'schedule' in braces}}
  schedule "1f1b" {schedule = "gpipe"}
}

// -----

dist.strategy @recompute {
  // expected-error @+1 {{'dist.recompute' has attribute 'layers' in braces}}
  recompute "full" {layers = "0"}
}

// -----

dist.strategy @bucket_bytes {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{'dist.bucket_bytes' has attribute 'foo' in braces}}
  bucket_bytes 3 {foo}
}

// -----

dist.strategy @overlap_chunks {
  mesh @mesh ["dp"] [2]
  // expected-error @+1 {{'dist.overlap_chunks' has attribute 'foo' in braces}}
  overlap_chunks auto {foo}
}

// -----

dist.strategy @generic_line {
  // expected-error @+1 {{'dist.recompute' op has attribute 'layers', which nothing reads; remove it: its attributes are activations}}
  "dist.recompute"() <{activations = "full"}> {layers = "0"} : () -> ()
}
