// An operation changes the value of a variable in place where nobody needs the old one.
// RUN: split-file %s %t
// RUN: bowline-compile %t/twice.mlir --mode generate --threads 1 --compile-to=schedule | FileCheck %t/twice.mlir
// RUN: not bowline-compile %t/no-variable.mlir --mode generate --disable-step canonicalize-graph --disable-step cse-graph --compile-to=graph 2>&1 | FileCheck %t/no-variable.mlir
// RUN: not bowline-compile %t/used-later.mlir --mode generate --disable-step canonicalize-graph --disable-step cse-graph --compile-to=graph 2>&1 | FileCheck %t/used-later.mlir
// RUN: not bowline-compile %t/not-written.mlir --mode generate --disable-step canonicalize-graph --disable-step cse-graph --compile-to=graph 2>&1 | FileCheck %t/not-written.mlir
// RUN: not bowline-compile %t/read-again.mlir --mode generate --disable-step canonicalize-graph --disable-step cse-graph --compile-to=graph 2>&1 | FileCheck %t/read-again.mlir
// RUN: not bowline-compile %t/read-before.mlir --mode generate --disable-step canonicalize-graph --disable-step cse-graph --compile-to=graph 2>&1 | FileCheck %t/read-before.mlir
// RUN: not bowline-compile %t/written-between.mlir --mode generate --disable-step canonicalize-graph --disable-step cse-graph --compile-to=graph 2>&1 | FileCheck %t/written-between.mlir

//--- twice.mlir
// One buffer, and no copy.
// CHECK: plan.kernel @cache_write.0 registered "cache_write" [#plan.arg<read_write, tensor<9x4x2x8xf32>>
// CHECK: %[[CACHE:.*]] = plan.buffer "cache"
// CHECK-NOT: plan.copy
// CHECK-COUNT-2: plan.launch @cache_write.0(%[[CACHE]],
// CHECK-NOT: plan.copy
// CHECK: plan.entry @f_entry
graph.state @cache cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.state @other cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.func @f(%values: tensor<6x2x8xf32>, %rows: tensor<4xi32>, %lengths: tensor<3xi32>, %blocks: tensor<3x5xi32>) {
  %old = graph.read @cache : tensor<9x4x2x8xf32>
  %one = graph.cache_write %old, %values at %rows, %lengths, %blocks : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  %two = graph.cache_write %one, %values at %rows, %lengths, %blocks : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  graph.write @cache, %two : tensor<9x4x2x8xf32>
  graph.return
}
graph.entry @f_entry [@f] repeat [1]

//--- no-variable.mlir
// CHECK: changes operand 0 in place, but this operand is no value of a variable; pass the result of a graph.read
graph.state @cache cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.state @other cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.func @f(%values: tensor<6x2x8xf32>, %rows: tensor<4xi32>, %lengths: tensor<3xi32>, %blocks: tensor<3x5xi32>) {
  %old = arith.constant dense<0.0> : tensor<9x4x2x8xf32>
  %one = graph.cache_write %old, %values at %rows, %lengths, %blocks : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  graph.write @cache, %one : tensor<9x4x2x8xf32>
  graph.return
}
graph.entry @f_entry [@f] repeat [1]

//--- used-later.mlir
// CHECK: changes operand 0 in place, but its old value is used afterwards
graph.state @cache cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.state @other cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.func @f(%values: tensor<6x2x8xf32>, %rows: tensor<4xi32>, %lengths: tensor<3xi32>, %blocks: tensor<3x5xi32>) {
  %old = graph.read @cache : tensor<9x4x2x8xf32>
  %one = graph.cache_write %old, %values at %rows, %lengths, %blocks : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  %sum = arith.addf %old, %one : tensor<9x4x2x8xf32>
  graph.write @cache, %one : tensor<9x4x2x8xf32>
  graph.write @other, %sum : tensor<9x4x2x8xf32>
  graph.return
}
graph.entry @f_entry [@f] repeat [1]

//--- not-written.mlir
// CHECK: changes operand 0 in place, but @cache is not written with the result; add a graph.write
graph.state @cache cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.state @other cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.func @f(%values: tensor<6x2x8xf32>, %rows: tensor<4xi32>, %lengths: tensor<3xi32>, %blocks: tensor<3x5xi32>) {
  %old = graph.read @cache : tensor<9x4x2x8xf32>
  %one = graph.cache_write %old, %values at %rows, %lengths, %blocks : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  graph.write @other, %one : tensor<9x4x2x8xf32>
  graph.return
}
graph.entry @f_entry [@f] repeat [1]

//--- read-again.mlir
// CHECK: changes operand 0 in place, but @cache is read before it is written
graph.state @cache cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.state @other cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.func @f(%values: tensor<6x2x8xf32>, %rows: tensor<4xi32>, %lengths: tensor<3xi32>, %blocks: tensor<3x5xi32>) {
  %old = graph.read @cache : tensor<9x4x2x8xf32>
  %one = graph.cache_write %old, %values at %rows, %lengths, %blocks : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  %again = graph.read @cache : tensor<9x4x2x8xf32>
  graph.write @other, %again : tensor<9x4x2x8xf32>
  graph.write @cache, %one : tensor<9x4x2x8xf32>
  graph.return
}
graph.entry @f_entry [@f] repeat [1]

//--- read-before.mlir
// CHECK: changes operand 0 in place, but @cache is read before it is written
graph.state @cache cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.state @other cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.func @f(%values: tensor<6x2x8xf32>, %rows: tensor<4xi32>, %lengths: tensor<3xi32>, %blocks: tensor<3x5xi32>) {
  %before = graph.read @cache : tensor<9x4x2x8xf32>
  %old = graph.read @cache : tensor<9x4x2x8xf32>
  %one = graph.cache_write %old, %values at %rows, %lengths, %blocks : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  graph.write @cache, %one : tensor<9x4x2x8xf32>
  graph.write @other, %before : tensor<9x4x2x8xf32>
  graph.return
}
graph.entry @f_entry [@f] repeat [1]

//--- written-between.mlir
// CHECK: changes operand 0 in place, but @cache gets another value meanwhile
graph.state @cache cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.state @other cache : tensor<9x4x2x8xf32> init(#graph.fill<0.0>)
graph.func @f(%values: tensor<6x2x8xf32>, %rows: tensor<4xi32>, %lengths: tensor<3xi32>, %blocks: tensor<3x5xi32>) {
  %zero = arith.constant dense<0.0> : tensor<9x4x2x8xf32>
  %old = graph.read @cache : tensor<9x4x2x8xf32>
  %one = graph.cache_write %old, %values at %rows, %lengths, %blocks : (tensor<9x4x2x8xf32>, tensor<6x2x8xf32>, tensor<4xi32>, tensor<3xi32>, tensor<3x5xi32>) -> tensor<9x4x2x8xf32>
  graph.write @cache, %zero : tensor<9x4x2x8xf32>
  graph.write @cache, %one : tensor<9x4x2x8xf32>
  graph.return
}
graph.entry @f_entry [@f] repeat [1]
