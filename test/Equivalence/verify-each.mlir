// The program is interpreted before and after each pass, and passes that keep what it computes are let through.
// RUN: bowline-opt %s --verify-each=equiv --canonicalize --group-fusions --fuse-epilogues | FileCheck %s
// RUN: bowline-opt %s -verify-each=equiv --pass-pipeline='builtin.module(graph.func(canonicalize,cse),insert-init{seed=3})' | FileCheck %s --check-prefix=NESTED
// CHECK: graph.fusion
// NESTED: graph.entry init @init

// So are those that end with commands on the arena.
// RUN: bowline-opt %s --verify-each=equiv --group-fusions --fuse-epilogues --insert-init --select-kernels --schedule-commands --donate-buffers --insert-events --pack-arena | FileCheck %s --check-prefix=COMMANDS
// COMMANDS: plan.launch @matmul
// COMMANDS: plan.entry @run

// A pass that takes away what callers run does not.
// RUN: not bowline-opt %s --verify-each=equiv --canonicalize --symbol-dce --cse 2>&1 | FileCheck %s --check-prefix=GONE
// GONE: error: step 'symbol-dce' removes entry @run
// GONE-NOT: error

// The option keeps its meaning for MLIR's verifier.
// RUN: bowline-opt %s --verify-each=0 --cse | FileCheck %s --check-prefix=PLAIN
// PLAIN: graph.param @w
// RUN: bowline-opt --help | FileCheck %s --check-prefix=HELP
// HELP: --verify-each {{.*}}equiv: also interpret the module before and after each

graph.param @w : tensor<5x4xf32> init(#graph.normal<0.5>) key("w")
graph.func @step(%x: tensor<3x4xf32> {graph.name = "x"}) -> (tensor<3x5xf32> {graph.name = "y"}) {
  %w = graph.read @w : tensor<5x4xf32>
  %0 = graph.dot_general %x, %w contract [1] x [1] : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>
  %c = arith.constant dense<0.1> : tensor<3x5xf32>
  %1 = arith.addf %0, %c : tensor<3x5xf32>
  graph.return %1 : tensor<3x5xf32>
}
graph.entry @run [@step] repeat [1] {sym_visibility = "private"}
