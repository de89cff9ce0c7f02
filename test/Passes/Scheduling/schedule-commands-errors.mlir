// What cannot be scheduled is named, with its place.
// RUN: bowline-opt %s --schedule-commands --verify-diagnostics --split-input-file

// Kernels come first.
graph.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{is no command; run select-kernels first}}
  %0 = math.tanh %x : tensor<3xf32>
  graph.return
}
graph.entry @e [@f] repeat [1]

// -----

// Callers find arguments by name, also those of a function that runs twice.
graph.func @f(%x: tensor<3xf32> {graph.name = "x"}) {
  graph.return
}
// expected-error @+1 {{has two arguments named 'x'; give each a 'graph.name' of its own}}
graph.entry @e [@f, @f] repeat [1, 1]

// -----

// A channel goes along the axis of the stages.
graph.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{needs the mesh axis of the stages, 'stage.axis' of the module; run split-stages first}}
  stage.send %x to 1 channel "activation.even" : tensor<3xf32>
  graph.return
}
graph.entry @e [@f] repeat [1]

// -----

graph.func @f() {
  // expected-error @+1 {{needs the mesh axis of the stages, 'stage.axis' of the module; run split-stages first}}
  %0 = stage.receive from 0 channel "activation.even" : tensor<3xf32>
  graph.return
}
graph.entry @e [@f] repeat [1]
