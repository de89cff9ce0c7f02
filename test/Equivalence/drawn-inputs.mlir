// What becomes row numbers or offsets as it is, is drawn as these have to be; of what cannot be compared the tool says so.
// RUN: split-file %s %t
// RUN: bowline-compile %t/inputs.mlir --mode generate --threads 1 --verify-each=equiv -o %t.plan 2>&1 | FileCheck %s --check-prefix=KEPT
// RUN: bowline-compile %t/direct.mlir --mode generate --threads 1 --compile-to=schedule -o %t.schedule.mlir
// RUN: bowline-opt %t.schedule.mlir --pass-pipeline="builtin.module(builtin.module(canonicalize))" --verify-each=equiv -o %t.canonical.mlir
// RUN: bowline-compile %t/whole.mlir --mode generate --threads 1 --verify-each=equiv -o %t.plan 2>&1 | FileCheck %s --check-prefix=REALS
// RUN: bowline-opt %t/whole.mlir --canonicalize --verify-each=equiv -o %t.canonical.mlir 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: not bowline-compile %t/computed.mlir --mode generate --threads 1 --verify-each=equiv -o %t.plan 2>&1 | FileCheck %s --check-prefix=COMPUTED
// KEPT: equivalence: {{[0-9]+}} steps kept what the program computes
// KEPT-SAME: half modulo 2147483647, where 0 of {{[1-9][0-9]*}} elements have no value
// REALS: equivalence: {{[0-9]+}} steps kept what the program computes
// REALS-SAME: all in f64 and none modulo 2147483647, where 'arith.fptosi' has no meaning
// REMARK: remark: passes are compared in f64 alone: 'arith.fptosi' has no meaning modulo a prime
// COMPUTED: error: {{.*}}'graph.gather' op index {{[0-9]+}} is outside of the table's 4 rows
// COMPUTED: drawn at random: 'ids' is from 0 to 63; if the program cannot take these, give its inputs a lower 'graph.limit'

// Offsets of two layers in one input, and row numbers that nothing limits: of an input, and of a state.
//--- inputs.mlir
graph.state @numbers saved : tensor<9xi32> init(#graph.fill<1.0>)
graph.func @f(%x: tensor<16x8xf32>, %m: tensor<2x8x8xf32>, %offsets: tensor<2x3xi32>, %ids: tensor<3x5xi32>) -> (tensor<16x8xf32>, tensor<15x8xf32>, tensor<9x8xf32>) {
  %0 = graph.slice %offsets at [0, 0] sizes [1, 3] : (tensor<2x3xi32>) -> tensor<1x3xi32>
  %first = graph.reshape %0 : (tensor<1x3xi32>) -> tensor<3xi32>
  %1 = graph.slice %offsets at [1, 0] sizes [1, 3] : (tensor<2x3xi32>) -> tensor<1x3xi32>
  %second = graph.reshape %1 : (tensor<1x3xi32>) -> tensor<3xi32>
  %v = graph.valid_rows %x of %first : (tensor<16x8xf32>, tensor<3xi32>) -> tensor<16x8xf32>
  %y = graph.grouped_dot %v, %m at %first : (tensor<16x8xf32>, tensor<2x8x8xf32>, tensor<3xi32>) -> tensor<16x8xf32>
  %z = graph.grouped_dot %y, %m at %second : (tensor<16x8xf32>, tensor<2x8x8xf32>, tensor<3xi32>) -> tensor<16x8xf32>
  %flat = graph.reshape %ids : (tensor<3x5xi32>) -> tensor<15xi32>
  %rows = graph.gather %x[%flat] : (tensor<16x8xf32>, tensor<15xi32>) -> tensor<15x8xf32>
  %numbers = graph.read @numbers : tensor<9xi32>
  %named = graph.gather %x[%numbers] : (tensor<16x8xf32>, tensor<9xi32>) -> tensor<9x8xf32>
  graph.return %z, %rows, %named : tensor<16x8xf32>, tensor<15x8xf32>, tensor<9x8xf32>
}
graph.entry @e [@f] repeat [1]

// Commands read the input itself.
//--- direct.mlir
graph.func @f(%x: tensor<16x8xf32>, %m: tensor<2x8x8xf32>, %offsets: tensor<3xi32>, %ids: tensor<15xi32>) -> (tensor<16x8xf32>, tensor<15x8xf32>) {
  %y = graph.grouped_dot %x, %m at %offsets : (tensor<16x8xf32>, tensor<2x8x8xf32>, tensor<3xi32>) -> tensor<16x8xf32>
  %rows = graph.gather %x[%ids] : (tensor<16x8xf32>, tensor<15xi32>) -> tensor<15x8xf32>
  graph.return %y, %rows : tensor<16x8xf32>, tensor<15x8xf32>
}
graph.entry @e [@f] repeat [1]

//--- whole.mlir
graph.func @f(%x: tensor<8x3xf32>, %p: tensor<5xf32>) -> tensor<5x3xf32> {
  %one = arith.constant dense<1.0> : tensor<5xf32>
  %q = arith.mulf %p, %one : tensor<5xf32>
  %zero = arith.constant dense<0.0> : tensor<5xf32>
  %none = arith.mulf %q, %zero : tensor<5xf32>
  %ids = arith.fptosi %none : tensor<5xf32> to tensor<5xi32>
  %y = graph.gather %x[%ids] : (tensor<8x3xf32>, tensor<5xi32>) -> tensor<5x3xf32>
  graph.return %y : tensor<5x3xf32>
}
graph.entry @e [@f] repeat [1]

//--- computed.mlir
graph.func @f(%x: tensor<4x3xf32>, %ids: tensor<50xi32> {graph.limit = 64 : i64, graph.name = "ids"}) -> tensor<50x3xf32> {
  %one = arith.constant dense<1> : tensor<50xi32>
  %next = arith.addi %ids, %one : tensor<50xi32>
  %y = graph.gather %x[%next] : (tensor<4x3xf32>, tensor<50xi32>) -> tensor<50x3xf32>
  graph.return %y : tensor<50x3xf32>
}
graph.entry @e [@f] repeat [1]
