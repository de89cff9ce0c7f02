// Nothing is left undone in silence.
// RUN: bowline-opt %s --recompute=mode=full --verify-diagnostics

graph.func @forward.0() {
  graph.return
}
graph.func @train_update() {
  graph.return
}
// expected-warning @+1 {{recomputation 'full' does nothing in a pipeline: stages keep what their backward passes read; use none}}
graph.entry @train_step [@forward.0, @train_update] repeat [1, 1] timeline [0, 0, 1, 0] microbatches 1
