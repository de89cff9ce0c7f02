// The interpreter runs functions and entries, keeps variables between repetitions and reads and writes .npy files.

// RUN: bowline-opt %s --interpret=scaled --interpret-inputs=random:3 --interpret-outputs=%t | FileCheck %s --check-prefix=SCALED
// SCALED: y : tensor<2x3xf32> = [{{[-0-9., e]+}}] sum
// SCALED: count : tensor<3xi32> = [0, 1, 2] sum 3
// SCALED-NOT: graph.func

// Results are inputs again: twice the doubled values minus four times the first ones is zero.
// RUN: bowline-opt %s --interpret=scaled --interpret-inputs=%t/y.npy --interpret-outputs=%t.twice
// RUN: bowline-opt %s --interpret=difference --interpret-inputs=%t/y.npy,%t.twice/y.npy | FileCheck %s --check-prefix=ZERO
// ZERO: result0 : tensor<2x3xf32> = [0, 0, 0, 0, 0, 0] sum 0

// An accumulator starts from its initial value in every run of the entry; the step is what three repetitions made it.
// RUN: bowline-opt %s --interpret=three_steps --interpret-inputs=random:1 | FileCheck %s --check-prefix=STEPS
// STEPS: step : tensor<i32> = [3] sum 3
// STEPS: total : tensor<f32> = [4.5] sum 4.5

// A fusion computes what its body says.
// RUN: bowline-opt %s --interpret=fused --interpret-inputs=%t/y.npy,%t.twice/y.npy | FileCheck %s --check-prefix=ZERO

// Rows that a fusion leaves out hold no number.
// RUN: bowline-opt %s --interpret=left_out | FileCheck %s --check-prefix=LEFT
// LEFT: result0 : tensor<3x2xi1> = [1, 1, 1, 1, 0, 0]

// The same seed gives the same values, another seed others.
// RUN: bowline-opt %s --interpret=weight --interpret-seed=1 > %t.a
// RUN: bowline-opt %s --interpret=weight --interpret-seed=1 > %t.b
// RUN: bowline-opt %s --interpret=weight --interpret-seed=2 > %t.c
// RUN: cmp %t.a %t.b
// RUN: not cmp -s %t.a %t.c

// Passes run before the interpreter.
// RUN: bowline-opt %s --canonicalize --interpret=scaled --interpret-inputs=random:3 | FileCheck %s --check-prefix=SCALED

// RUN: not bowline-opt %s --interpret=nobody 2>&1 | FileCheck %s --check-prefix=NOBODY
// NOBODY: error: no graph.func or graph.entry is named @nobody
// RUN: not bowline-opt %s --interpret=scaled 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: error: @scaled takes 1 inputs but 0 are given; name one .npy file for each, or 'random:SEED' for all
// RUN: not bowline-opt %s --interpret=scaled --interpret-inputs=random:x 2>&1 | FileCheck %s --check-prefix=SEED
// SEED: error: 'random:x': the seed must be an integer, as in 'random:1'
// RUN: not bowline-opt %s --interpret=scaled --interpret-inputs=%t/missing.npy 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: input 'x': '{{.*}}missing.npy': cannot be read: No such file or directory
// RUN: not bowline-opt %s --interpret=scaled --interpret-inputs=%s 2>&1 | FileCheck %s --check-prefix=FORMAT
// FORMAT: error: input 'x': '{{.*}}interpret.mlir': not a .npy file; save the array with numpy.save
// RUN: not bowline-opt %s --interpret=scaled --interpret-inputs=%t/count.npy 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: error: input 'x': '{{.*}}count.npy' holds integers but the argument's type is 'tensor<2x3xf32>'
// RUN: not bowline-opt %s --interpret=unbounded --interpret-inputs=random:1 2>&1 | FileCheck %s --check-prefix=UNBOUNDED
// UNBOUNDED: error: input 'arg0' of @unbounded has integer elements and no 'graph.limit'
// RUN: not bowline-opt %s --interpret=unbounded --interpret-inputs=%t/y.npy 2>&1 | FileCheck %s --check-prefix=FLOATS
// FLOATS: holds floats but the argument's type is 'tensor<3xi32>'
// RUN: not bowline-opt %s --interpret=lookup --interpret-inputs=%t/count.npy 2>&1 | FileCheck %s --check-prefix=RANGE
// RANGE: error: 'graph.gather' op index 2 is outside of the table's 2 rows
// RUN: not bowline-opt %s --interpret=opaque 2>&1 | FileCheck %s --check-prefix=OPAQUE
// OPAQUE: error: 'tensor.empty' op has no reference semantics: it does not implement the Interpretable interface

graph.param @w : tensor<2x3xf32> init(#graph.normal<1.0>) key("w")
graph.state @step saved|step : tensor<i32> init(#graph.fill<0.0>)
graph.state @total accumulator : tensor<f32> init(#graph.fill<0.0>)

graph.func @scaled(%x: tensor<2x3xf32> {graph.name = "x"})
    -> (tensor<2x3xf32> {graph.name = "y"}, tensor<3xi32> {graph.name = "count"}) {
  %y = arith.addf %x, %x : tensor<2x3xf32>
  %count = graph.iota dim 0 : tensor<3xi32>
  graph.return %y, %count : tensor<2x3xf32>, tensor<3xi32>
}

graph.func @difference(%once: tensor<2x3xf32>, %twice: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %doubled = arith.addf %once, %once : tensor<2x3xf32>
  %zero = arith.subf %doubled, %twice : tensor<2x3xf32>
  graph.return %zero : tensor<2x3xf32>
}

graph.func @fused(%once: tensor<2x3xf32>, %twice: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = graph.fusion(%once, %twice) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>):
    %doubled = arith.addf %a, %a : tensor<2x3xf32>
    %difference = arith.subf %b, %doubled : tensor<2x3xf32>
    graph.yield %difference : tensor<2x3xf32>
  }
  graph.return %zero : tensor<2x3xf32>
}

graph.func @step_once() {
  %one = arith.constant dense<1> : tensor<i32>
  %amount = arith.constant dense<1.5> : tensor<f32>
  %step = graph.read @step : tensor<i32>
  %next = arith.addi %step, %one : tensor<i32>
  graph.write @step, %next : tensor<i32>
  %total = graph.read @total : tensor<f32>
  %more = arith.addf %total, %amount : tensor<f32>
  graph.write @total, %more : tensor<f32>
  graph.return
}
graph.func @report() -> (tensor<i32> {graph.name = "step"}, tensor<f32> {graph.name = "total"}) {
  %step = graph.read @step : tensor<i32>
  %total = graph.read @total : tensor<f32>
  graph.return %step, %total : tensor<i32>, tensor<f32>
}
graph.entry @three_steps [@step_once, @report] repeat [3, 1]

graph.func @weight() -> tensor<2x3xf32> {
  %w = graph.read @w : tensor<2x3xf32>
  graph.return %w : tensor<2x3xf32>
}

graph.func @unbounded(%ids: tensor<3xi32>) {
  graph.return
}

graph.func @lookup(%ids: tensor<3xi32>) -> tensor<3x3xf32> {
  %w = graph.read @w : tensor<2x3xf32>
  %rows = graph.gather %w[%ids] : (tensor<2x3xf32>, tensor<3xi32>) -> tensor<3x3xf32>
  graph.return %rows : tensor<3x3xf32>
}

graph.func @left_out() -> tensor<3x2xi1> {
  %ones = arith.constant dense<1.0> : tensor<3x2xf32>
  %count = arith.constant dense<[9, 2]> : tensor<2xi32>
  %rows = graph.fusion(%ones, %count) rows [1, 0, 2] : (tensor<3x2xf32>, tensor<2xi32>) -> tensor<3x2xf32> {
  ^bb0(%a: tensor<3x2xf32>, %n: tensor<2xi32>):
    graph.yield %a : tensor<3x2xf32>
  }
  %same = arith.cmpf oeq, %rows, %rows : tensor<3x2xf32>
  graph.return %same : tensor<3x2xi1>
}

graph.func @opaque() -> tensor<2xf32> {
  %0 = tensor.empty() : tensor<2xf32>
  graph.return %0 : tensor<2xf32>
}
