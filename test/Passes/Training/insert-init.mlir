// The entry that gives every variable its first value.
// RUN: bowline-opt %s --insert-init=seed=7 | FileCheck %s

// Each variable has a stream of its own, named by its key; accumulators start nowhere.
// CHECK-LABEL: graph.func @initialize() {
// CHECK-NEXT: %[[A:.*]] = graph.random normal(0.02) seed(7) stream(-5808556873153909620) : tensor<4xf32>
// CHECK-NEXT: graph.write @a, %[[A]]
// CHECK-NEXT: %[[B:.*]] = graph.random normal(0.02) seed(7) stream(-5808553574619024987) : tensor<4xf32>
// CHECK-NEXT: graph.write @b, %[[B]]
// CHECK-NEXT: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT: graph.write @scale, %[[ONE]]
// CHECK-NEXT: %[[STEP:.*]] = arith.constant dense<3> : tensor<i32>
// CHECK-NEXT: graph.write @step, %[[STEP]]
// CHECK-NEXT: graph.return
// CHECK: graph.entry init @init [@initialize] repeat [1]
graph.param @a : tensor<4xf32> init(#graph.normal<0.02>) key("a")
graph.param @b : tensor<4xf32> init(#graph.normal<0.02>) key("b")
graph.param @scale : tensor<2xf32> init(#graph.fill<1.0>) key("scale")
graph.state @step saved|step : tensor<i32> init(#graph.fill<3.0>)
graph.state @sum accumulator : tensor<2xf32> init(#graph.fill<0.0>)
