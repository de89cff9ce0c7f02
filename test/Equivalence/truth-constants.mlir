// Constants of truth values have a byte for each element in a plan, and bits in the IR.
// RUN: bowline-compile %s --mode generate --threads 1 --verify-each=equiv -o %t.plan
// RUN: bowline-check %t.plan | FileCheck %s --check-prefix=SOUND
// RUN: bowline-translate --plan-to-mlir %t.plan -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// RUN: bowline-translate --mlir-to-plan %t.mlir -o %t.again.plan
// RUN: cmp %t.plan %t.again.plan
// SOUND: sound
// CHECK: plan.constant {{.*}}dense<[true, false, true, true, false, true, false, false, true]> : tensor<9xi1>

graph.func @f(%x: tensor<9xf32>, %y: tensor<9xf32>) -> tensor<9xf32> {
  %chosen = arith.constant dense<[true, false, true, true, false, true, false, false, true]> : tensor<9xi1>
  %z = arith.select %chosen, %x, %y : tensor<9xi1>, tensor<9xf32>
  graph.return %z : tensor<9xf32>
}
graph.entry @e [@f] repeat [1]
