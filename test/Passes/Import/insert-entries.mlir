// The functions of a model become callable.
// RUN: bowline-opt %s --insert-entries --split-input-file | FileCheck %s

// Without a mesh there is one rank. Entries are named after their kind, unless that name is taken.
// CHECK: dist.mesh @mesh ["dp"] [1]
// CHECK: graph.entry eval_step @eval_step [@objective] repeat [1]
// CHECK: graph.entry generate @generate_0 [@generate] repeat [1]
graph.func loss @objective() {
  graph.return
}
graph.func generate @generate() {
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

// An entry of the kind that is there stays alone; one of another kind does not count.
// CHECK-LABEL: graph.entry generate @mine [@write] repeat [2]
// CHECK: graph.entry @other [@objective] repeat [1]
// CHECK: graph.entry eval_step @eval_step [@objective] repeat [1]
// CHECK-NOT: graph.entry
graph.entry generate @mine [@write] repeat [2]
graph.entry @other [@objective] repeat [1]
graph.func generate @write() {
  graph.return
}
graph.func loss @objective() {
  graph.return
}

// -----

// Names say nothing: what is called @loss and is not marked is a function like any other.
// CHECK-LABEL: graph.func @loss
// CHECK-NOT: graph.entry
graph.func @loss() {
  graph.return
}
