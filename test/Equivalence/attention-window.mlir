// Attention of the last keys is trained, and keeps what it computes in every step of the compiler.
// RUN: bowline-compile %s --mode train --threads 1 --verify-each=equiv -o %t.one.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.one.plan | FileCheck %s --check-prefix=SOUND
// RUN: bowline-compile %s --mode train --threads 1 --dtype bf16 --verify-each=equiv -o %t.bf16.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.bf16.plan | FileCheck %s --check-prefix=SOUND
// RUN: bowline-compile %s --mode train --threads 1 --mesh dp=2 --verify-each=equiv -o %t.rows.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.rows.plan | FileCheck %s --check-prefix=SOUND

// CHECK: note: equivalence: {{[0-9]+}} steps kept what the program computes
// CHECK-SAME: and 2 gradients with differences of the loss
// SOUND: sound

// Kernels know it.
// RUN: bowline-compile %s --mode train --threads 1 --compile-to=schedule -o - | FileCheck %s --check-prefix=KERNEL
// KERNEL: plan.kernel @attention_forward.0 registered "attention_forward" config {causal = 1 : i64, scale = 5.000000e-01 : f64, window = 3 : i64}
// KERNEL: plan.kernel @attention_backward.0 registered "attention_backward" config {causal = 1 : i64, scale = 5.000000e-01 : f64, window = 3 : i64}

graph.param @q : tensor<6x8xf32> init(#graph.normal<0.5>) key("q")
graph.param @k : tensor<6x4xf32> init(#graph.normal<0.5>) key("k")
graph.func loss @loss(%x: tensor<2x7x6xf32> {graph.name = "x"})
    -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "positions"}) {
  %wq = graph.read @q : tensor<6x8xf32>
  %wk = graph.read @k : tensor<6x4xf32>
  %q0 = graph.dot_general %x, %wq contract [2] x [0] : (tensor<2x7x6xf32>, tensor<6x8xf32>) -> tensor<2x7x8xf32>
  %k0 = graph.dot_general %x, %wk contract [2] x [0] : (tensor<2x7x6xf32>, tensor<6x4xf32>) -> tensor<2x7x4xf32>
  %q = graph.reshape %q0 : (tensor<2x7x8xf32>) -> tensor<2x7x2x4xf32>
  %k = graph.reshape %k0 : (tensor<2x7x4xf32>) -> tensor<2x7x1x4xf32>
  %out, %logsumexp = graph.attention causal window 3 %q, %k, %k scale 0.5
      : (tensor<2x7x2x4xf32>, tensor<2x7x1x4xf32>, tensor<2x7x1x4xf32>) -> (tensor<2x7x2x4xf32>, tensor<2x2x7xf32>)
  %squares = arith.mulf %out, %out : tensor<2x7x2x4xf32>
  %sum = graph.reduce sum %squares dims [0, 1, 2, 3] : (tensor<2x7x2x4xf32>) -> tensor<f32>
  %positions = arith.constant dense<14.0> : tensor<f32>
  graph.return %sum, %positions : tensor<f32>, tensor<f32>
}
