// The functions of a model become callable.
// RUN: bowline-opt %s --insert-entries --split-input-file | FileCheck %s

// Without a mesh there is one rank; @generate leaves its name to the entry.
// CHECK: dist.mesh @mesh ["dp"] [1]
// CHECK: graph.func @loss
// CHECK: graph.func @generate_logits
// CHECK: graph.entry @eval_step [@loss] repeat [1]
// CHECK: graph.entry @generate [@generate_logits] repeat [1]
graph.func @loss() {
  graph.return
}
graph.func @generate() {
  graph.return
}

// -----

// A mesh that is there stays alone, and a module without either function gets no entry.
// CHECK-LABEL: dist.mesh @grid ["tp"] [1]
// CHECK-NOT: dist.mesh
// CHECK: graph.func @other
// CHECK-NOT: graph.entry
dist.mesh @grid ["tp"] [1]
graph.func @other() {
  graph.return
}

// -----

// An entry that already runs @generate follows the new name.
// CHECK-LABEL: graph.entry @mine [@generate_logits] repeat [2]
graph.entry @mine [@generate] repeat [2]
graph.func @generate() {
  graph.return
}
