// Mixed precision in bf16 or f16.
// RUN: split-file %s %t
// RUN: bowline-opt %t/models.mlir --lower-precision --split-input-file | FileCheck %t/models.mlir
// RUN: bowline-opt %t/models.mlir --lower-precision=keep-master=false --split-input-file \
// RUN:   | FileCheck %t/models.mlir --check-prefix=NARROW
// RUN: bowline-opt %t/models.mlir --lower-precision --differentiate --canonicalize --cse --keep-accumulators \
// RUN:   --split-input-file | FileCheck %t/models.mlir --check-prefix=GRAD
// RUN: bowline-opt %t/models.mlir "--lower-precision=to=f16 keep-master=false" --split-input-file \
// RUN:   | FileCheck %t/models.mlir --check-prefix=HALF
// RUN: not bowline-opt %t/models.mlir --lower-precision=to=q4_k --split-input-file 2>&1 \
// RUN:   | FileCheck %t/models.mlir --check-prefix=NOT
// RUN: bowline-opt %t/others.mlir --lower-precision --split-input-file | FileCheck %t/others.mlir
// RUN: bowline-opt %t/others.mlir --lower-precision=keep-master=false --split-input-file \
// RUN:   | FileCheck %t/others.mlir --check-prefix=NARROW

//--- models.mlir
// A parameter is rounded once, where it is read; values between contractions are bf16, the loss is f32.
// CHECK: graph.param @w : tensor<3x5xf32>
// CHECK-LABEL: graph.func loss @loss
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32>
// CHECK: %[[XN:.*]] = arith.truncf %[[X]] : tensor<4x3xf32> to tensor<4x3xbf16>
// CHECK: %[[W:.*]] = graph.read @w : tensor<3x5xf32>
// CHECK-NEXT: %[[WN:.*]] = arith.truncf %[[W]] : tensor<3x5xf32> to tensor<3x5xbf16>
// CHECK-NEXT: %[[Y:.*]] = graph.dot_general %[[XN]], %[[WN]] {{.*}} -> tensor<4x5xbf16>
// CHECK-NEXT: %[[A:.*]] = graph.silu %[[Y]] : tensor<4x5xbf16>
// CHECK-NEXT: %[[Z:.*]] = graph.dot_general %[[A]], %[[WN]] {{.*}} -> tensor<4x3xbf16>
// CHECK-NEXT: %[[L:.*]], %{{.*}} = graph.softmax_cross_entropy %[[Z]], %{{.*}} : (tensor<4x3xbf16>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[S:.*]] = graph.reduce sum %[[L]] dims [0] : (tensor<4xf32>) -> tensor<f32>
// CHECK-NOT: arith.truncf
// CHECK: graph.return %[[S]]

// NARROW: graph.param @w : tensor<3x5xbf16>
// NARROW-LABEL: graph.func loss @loss
// NARROW: %[[W:.*]] = graph.read @w : tensor<3x5xbf16>
// NARROW-NEXT: graph.dot_general %{{.*}}, %[[W]]
// NARROW: graph.dot_general %{{.*}}, %[[W]]

// HALF: graph.param @w : tensor<3x5xf16>
// HALF-LABEL: graph.func loss @loss
// HALF: %[[W:.*]] = graph.read @w : tensor<3x5xf16>
// HALF-NEXT: %[[Y:.*]] = graph.dot_general %{{.*}}, %[[W]] {{.*}} -> tensor<4x5xf16>
// HALF: graph.softmax_cross_entropy %{{.*}} : (tensor<4x3xf16>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
// NOT: error: cannot compute in q4_k; use one of bf16, f16{{$}}

// The gradient of a parameter is the sum in f32, without a cast; that of activations is bf16.
// GRAD: graph.state @w.grad accumulator of @w : tensor<3x5xf32>
// GRAD-LABEL: graph.func microbatch @train_microbatch
// GRAD: %[[G:.*]] = graph.softmax_cross_entropy_grad {{.*}} -> tensor<4x3xbf16>
// GRAD: graph.dot_general {{.*}} : (tensor<{{[0-9x]+}}xbf16>, tensor<{{[0-9x]+}}xbf16>) -> tensor<{{[0-9x]+}}x{{bf16|f32}}>
// GRAD: graph.write @w.grad, %{{.*}} : tensor<3x5xf32>
graph.param @w : tensor<3x5xf32> init(#graph.fill<0.0>) key("w")
graph.func loss @loss(%x: tensor<4x3xf32>, %l: tensor<4xi32>) -> (tensor<f32>, tensor<f32>) {
  %w = graph.read @w : tensor<3x5xf32>
  %y = graph.dot_general %x, %w contract [1] x [0] : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %a = graph.silu %y : tensor<4x5xf32>
  %z = graph.dot_general %a, %w contract [1] x [1] : (tensor<4x5xf32>, tensor<3x5xf32>) -> tensor<4x3xf32>
  %loss, %lse = graph.softmax_cross_entropy %z, %l : (tensor<4x3xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %sum = graph.reduce sum %loss dims [0] : (tensor<4xf32>) -> tensor<f32>
  %n = arith.constant dense<4.0> : tensor<f32>
  graph.return %sum, %n : tensor<f32>, tensor<f32>
}

// -----

// Norms of f32 stay f32; rotations follow their input but keep their tables; statistics of attention stay f32; sums and
// what the function returns are widened again.
// CHECK-LABEL: graph.func loss @loss
// CHECK: %[[S:.*]] = graph.read @s : tensor<4xf32>
// CHECK: %[[COS:.*]], %[[SIN:.*]] = graph.rope_angles {{.*}} -> (tensor<3x2xf32>, tensor<3x2xf32>)
// CHECK: %[[N:.*]] = graph.rms_norm %{{.*}}, %[[S]] {{.*}} : (tensor<1x3x2x4xf32>, tensor<4xf32>) -> tensor<1x3x2x4xf32>
// CHECK: %[[NN:.*]] = arith.truncf %[[N]]
// CHECK: %[[QN:.*]] = graph.dot_general %[[NN]], {{.*}} -> tensor<1x3x2x4xbf16>
// CHECK: %[[Q:.*]] = graph.rope %[[QN]], %[[COS]], %[[SIN]] : (tensor<1x3x2x4xbf16>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<1x3x2x4xbf16>
// CHECK: graph.attention {{.*}} -> (tensor<1x3x2x4xbf16>, tensor<{{[0-9x]+}}xf32>)
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : tensor<1x3x2x4xbf16> to tensor<1x3x2x4xf32>
// CHECK: graph.reduce sum %[[WIDE]] {{.*}} -> tensor<f32>
// The gradient of the scale, of the parameter's type; the tables still f32.
// GRAD-LABEL: graph.func microbatch @train_microbatch
// GRAD: graph.attention_grad {{.*}} -> (tensor<1x3x2x4xbf16>, tensor<1x3x2x4xbf16>, tensor<1x3x2x4xbf16>)
// GRAD: graph.rope inverse %{{.*}}, %{{.*}}, %{{.*}} : (tensor<1x3x2x4xbf16>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<1x3x2x4xbf16>
// GRAD: graph.reduce sum {{.*}} -> tensor<4xf32>
// GRAD: graph.write @s.grad, %{{.*}} : tensor<4xf32>
graph.param @s : tensor<4xf32> init(#graph.fill<1.0>) key("s")
graph.param @w : tensor<4x4xf32> init(#graph.fill<1.0>) key("w")
graph.func loss @loss(%x: tensor<1x3x2x4xf32>) -> (tensor<f32>, tensor<f32>) {
  %s = graph.read @s : tensor<4xf32>
  %p = graph.iota dim 0 : tensor<3xi32>
  %cos, %sin = graph.rope_angles %p theta 10000.0 : (tensor<3xi32>) -> (tensor<3x2xf32>, tensor<3x2xf32>)
  %n = graph.rms_norm %x, %s eps 1.0e-5 : (tensor<1x3x2x4xf32>, tensor<4xf32>) -> tensor<1x3x2x4xf32>
  %w = graph.read @w : tensor<4x4xf32>
  %p4 = graph.dot_general %n, %w contract [3] x [0] : (tensor<1x3x2x4xf32>, tensor<4x4xf32>) -> tensor<1x3x2x4xf32>
  %q = graph.rope %p4, %cos, %sin : (tensor<1x3x2x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<1x3x2x4xf32>
  %a, %lse = graph.attention causal %q, %n, %n scale 0.5 : (tensor<1x3x2x4xf32>, tensor<1x3x2x4xf32>, tensor<1x3x2x4xf32>) -> (tensor<1x3x2x4xf32>, tensor<1x2x3xf32>)
  %sum = graph.reduce sum %a dims [0, 1, 2, 3] : (tensor<1x3x2x4xf32>) -> tensor<f32>
  %one = arith.constant dense<1.0> : tensor<f32>
  graph.return %sum, %one : tensor<f32>, tensor<f32>
}

//--- others.mlir
// Elementwise work on f32 alone stays f32; a computed f32 value beside a bf16 one is not rounded, a parameter is. Rows of
// a table are gathered as they are. Variables and integers keep their types.
// CHECK-LABEL: graph.func @residual
// CHECK: %[[T:.*]] = math.tanh %{{.*}} : tensor<4x3xf32>
// CHECK: %[[D:.*]] = graph.dot_general {{.*}} -> tensor<4x3xbf16>
// CHECK: %[[DW:.*]] = arith.extf %[[D]]
// CHECK: %[[R:.*]] = arith.addf %[[DW]], %[[T]] : tensor<4x3xf32>
// CHECK: graph.return %[[R]]
graph.func @residual(%x: tensor<4x3xf32>, %w: tensor<3x3xf32>) -> tensor<4x3xf32> {
  %0 = math.tanh %x : tensor<4x3xf32>
  %1 = graph.dot_general %0, %w contract [1] x [0] : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  %2 = arith.addf %1, %0 : tensor<4x3xf32>
  graph.return %2 : tensor<4x3xf32>
}

// CHECK-LABEL: graph.func @f
// CHECK: graph.gather {{.*}} -> tensor<4x3xf32>
// CHECK: %[[D:.*]] = graph.dot_general {{.*}} -> tensor<4x3xbf16>
// CHECK: %[[A:.*]] = graph.silu %[[D]] : tensor<4x3xbf16>
// CHECK: arith.cmpf olt, %[[A]], %{{.*}} : tensor<4x3xbf16>
// CHECK: arith.select {{.*}} : tensor<4x3xi1>, tensor<4x3xbf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[A]] : tensor<4x3xbf16> to tensor<4x3xf32>
// CHECK-NEXT: graph.write @v, %[[WIDE]] : tensor<4x3xf32>
// CHECK: graph.return %{{.*}} : tensor<4x3xf32>
// A parameter that the program writes is stored as it was.
// NARROW: graph.param @v : tensor<4x3xf32>
// NARROW: graph.param @t : tensor<4x3xbf16>
// NARROW-LABEL: graph.func @f
// NARROW: graph.read @t : tensor<4x3xbf16>
// NARROW: graph.gather {{.*}} -> tensor<4x3xbf16>
// NARROW: graph.read @v : tensor<4x3xf32>
// NARROW: graph.write @v, %{{.*}} : tensor<4x3xf32>
graph.param @v : tensor<4x3xf32> init(#graph.fill<1.0>) key("v")
graph.param @t : tensor<4x3xf32> init(#graph.fill<1.0>) key("t")
graph.func @f(%x: tensor<4x3xf32>, %w: tensor<3x3xf32>, %i: tensor<4xi32>) -> tensor<4x3xf32> {
  %t = graph.read @t : tensor<4x3xf32>
  %rows = graph.gather %t[%i] : (tensor<4x3xf32>, tensor<4xi32>) -> tensor<4x3xf32>
  %1 = graph.dot_general %rows, %w contract [1] x [0] : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  %2 = graph.silu %1 : tensor<4x3xf32>
  %v = graph.read @v : tensor<4x3xf32>
  %3 = arith.cmpf olt, %2, %v : tensor<4x3xf32>
  %4 = arith.select %3, %2, %v : tensor<4x3xi1>, tensor<4x3xf32>
  graph.write @v, %2 : tensor<4x3xf32>
  graph.return %4 : tensor<4x3xf32>
}

// -----

// A program that says bf16 itself is as it was, and its own casts still have a wider operand.
// CHECK-LABEL: graph.func @f
// CHECK: graph.reduce sum %{{.*}} dims [0] : (tensor<4x3xbf16>) -> tensor<3xbf16>
// CHECK: %[[D:.*]] = graph.dot_general {{.*}} -> tensor<4x3xbf16>
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[D]] : tensor<4x3xbf16> to tensor<4x3xf32>
// CHECK-NEXT: arith.truncf %[[W]] : tensor<4x3xf32> to tensor<4x3xbf16>
// CHECK: arith.extf %[[D]] : tensor<4x3xbf16> to tensor<4x3xf64>
graph.func @f(%h: tensor<4x3xbf16>, %x: tensor<4x3xf32>, %w: tensor<3x3xf32>)
    -> (tensor<3xbf16>, tensor<4x3xbf16>, tensor<4x3xf64>, tensor<4x3xbf16>) {
  %0 = graph.reduce sum %h dims [0] : (tensor<4x3xbf16>) -> tensor<3xbf16>
  %1 = graph.dot_general %x, %w contract [1] x [0] : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  %2 = arith.truncf %1 : tensor<4x3xf32> to tensor<4x3xbf16>
  %3 = arith.extf %1 : tensor<4x3xf32> to tensor<4x3xf64>
  graph.return %0, %2, %3, %h : tensor<3xbf16>, tensor<4x3xbf16>, tensor<4x3xf64>, tensor<4x3xbf16>
}
