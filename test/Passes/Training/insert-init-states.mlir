// A program that only generates loads its weights: what else persists is initialised alone, and nothing where there is
// no such state.
// RUN: bowline-opt %s --insert-init=weights=false --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: graph.func @initialize() {
// CHECK-NEXT: %[[START:.*]] = arith.constant dense<3> : tensor<i32>
// CHECK-NEXT: graph.write @step, %[[START]]
// CHECK-NEXT: %[[EMPTY:.*]] = arith.constant dense<5.000000e-01> : tensor<4xf32>
// CHECK-NEXT: graph.write @cache, %[[EMPTY]]
// CHECK-NEXT: graph.return
// CHECK: graph.entry init @init [@initialize] repeat [1]
graph.param @w : tensor<2x3xf32> init(#graph.normal<0.02>) key("w")
graph.state @step saved|step : tensor<i32> init(#graph.fill<3.0>)
graph.state @cache per_request : tensor<4xf32> init(#graph.fill<0.5>)

// -----

// CHECK-LABEL: graph.param @alone
// CHECK-NOT: graph.entry
graph.param @alone : tensor<2x3xf32> init(#graph.normal<0.02>) key("w")

// -----

graph.state @step saved|step : tensor<i32> init(#graph.fill<3.0>)
graph.func @mine() {
  graph.return
}
// expected-error @+1 {{is of kind init, which insert-init makes; leave out the kind}}
graph.entry init @start [@mine] repeat [1]
