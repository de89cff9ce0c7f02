// Every operation gets a kernel.
// RUN: split-file %s %t
// RUN: bowline-opt %t/kernels.mlir --select-kernels --split-input-file | FileCheck %t/kernels.mlir
// RUN: bowline-opt %t/contractions.mlir --select-kernels --split-input-file | FileCheck %t/contractions.mlir
// RUN: not bowline-opt %t/contractions.mlir --select-kernels=threads=0 --split-input-file 2>&1 \
// RUN:   | FileCheck %t/contractions.mlir --check-prefix=REFUSED
// RUN: not bowline-opt %t/error.mlir --select-kernels 2>&1 | FileCheck %s --check-prefix=ERROR

//--- kernels.mlir
// Registered kernels have the sizes in their configuration, and scratch as their last argument. Equal calls share one.
// Their traffic is what the operation moves: of a table that is gathered from, the rows that it gives.
// CHECK: plan.kernel @matmul.0 registered "matmul"
// CHECK-SAME: a_strides = array<i64: 0, 3, 1>, b_strides = array<i64: 0, 5, 1>, batch = 1 : i64
// CHECK-SAME: c_strides = array<i64: 20, 5, 1>, k = 3 : i64, m = 4 : i64, n = 5 : i64}
// CHECK-SAME: [#plan.arg<read, tensor<4x3xf32>>, #plan.arg<read, tensor<3x5xf32>>, #plan.arg<write, tensor<4x5xf32>>,
// CHECK-SAME: #plan.arg<write, tensor<{{[0-9]+}}xui8>>] cost 1.200000e+02, 1.880000e+02
// CHECK-NOT: plan.kernel @matmul
// CHECK: plan.kernel @gather_rows.0 registered "gather_rows" [#plan.arg<read, tensor<3x5xf32>>,
// CHECK-SAME: #plan.arg<read, tensor<2xi32>>, #plan.arg<write, tensor<2x5xf32>>] cost 0.000000e+00, 8.800000e+01
// CHECK-NOT: plan.kernel
// CHECK-LABEL: graph.func @registered
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32>, %[[I:.*]]: tensor<2xi32>
// CHECK: %[[W:.*]] = graph.read @w
// CHECK: %[[A:.*]] = plan.call @matmul.0(%[[X]], %[[W]])
// CHECK: %[[B:.*]] = plan.call @matmul.0(%[[X]], %[[W]])
// CHECK: %[[G:.*]] = plan.call @gather_rows.0(%[[W]], %[[I]])
// CHECK: graph.return %[[A]], %[[B]], %[[G]]
graph.param @w : tensor<3x5xf32> init(#graph.fill<0.0>) key("w")
graph.func @registered(%x: tensor<4x3xf32>, %i: tensor<2xi32>) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<2x5xf32>) {
  %w = graph.read @w : tensor<3x5xf32>
  %a = graph.dot_general %x, %w contract [1] x [0] : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %b = graph.dot_general %x, %w contract [1] x [0] : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %g = graph.gather %w[%i] : (tensor<3x5xf32>, tensor<2xi32>) -> tensor<2x5xf32>
  graph.return %a, %b, %g : tensor<4x5xf32>, tensor<4x5xf32>, tensor<2x5xf32>
}

// -----

// Batch and heads have the positions between them: both sides are rearranged, by one kernel as they are alike.
// CHECK: plan.kernel @transpose.0 body @[[BODY:.*]] [#plan.arg<read, tensor<2x5x3x4xf32>>,
// CHECK-SAME: #plan.arg<write, tensor<2x3x5x4xf32>>]
// CHECK: func.func @[[BODY]]
// CHECK: graph.transpose %{{.*}} perm [0, 2, 1, 3]
// CHECK: plan.kernel @matmul.0
// CHECK-SAME: a_strides = array<i64: 20, 4, 1>, b_strides = array<i64: 20, 1, 4>, batch = 6 : i64
// CHECK-NOT: plan.kernel
// CHECK-LABEL: graph.func @transposed
// CHECK-SAME: %[[Q:.*]]: tensor<2x5x3x4xf32>, %[[K:.*]]: tensor<2x5x3x4xf32>
// CHECK: %[[QT:.*]] = plan.call @transpose.0(%[[Q]])
// CHECK: %[[KT:.*]] = plan.call @transpose.0(%[[K]])
// CHECK: plan.call @matmul.0(%[[QT]], %[[KT]])
graph.func @transposed(%q: tensor<2x5x3x4xf32>, %k: tensor<2x5x3x4xf32>) -> tensor<2x3x5x5xf32> {
  %0 = graph.dot_general %q, %k batch [0, 2] x [0, 2] contract [3] x [3] : (tensor<2x5x3x4xf32>, tensor<2x5x3x4xf32>) -> tensor<2x3x5x5xf32>
  graph.return %0 : tensor<2x3x5x5xf32>
}

// -----

// Each use of a constant is filled where it is wanted; a table is stored in the plan.
// CHECK: plan.kernel @fill.0 registered "fill" config {value = 5.000000e-01 : f64}
// CHECK-NOT: plan.kernel
// CHECK-LABEL: graph.func @constants
// CHECK: %[[T:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]>
// CHECK-NOT: arith.constant
// CHECK: %[[F:.*]] = plan.call @fill.0()
// CHECK-NEXT: graph.write @s, %[[F]]
// CHECK-NEXT: %[[G:.*]] = plan.call @fill.0()
// CHECK-NEXT: graph.write @t, %[[G]]
// CHECK: graph.return %[[T]]
graph.state @s saved : tensor<3xf32> init(#graph.fill<0.0>)
graph.state @t saved : tensor<3xf32> init(#graph.fill<0.0>)
graph.func @constants() -> tensor<3xf32> {
  %t = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %z = arith.constant dense<0.5> : tensor<3xf32>
  graph.write @s, %z : tensor<3xf32>
  graph.write @t, %z : tensor<3xf32>
  graph.return %t : tensor<3xf32>
}

// -----

// Equal fusions share a kernel. One that has another input, though it does not use it, has other arguments.
// CHECK: plan.kernel @tanh.0 body @tanh.0.body [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>]
// CHECK: plan.kernel @tanh.1 body @tanh.1.body [#plan.arg<read, tensor<4xf32>>, #plan.arg<read, tensor<4xf32>>,
// CHECK-SAME: #plan.arg<write, tensor<4xf32>>]
// CHECK-NOT: plan.kernel
// CHECK-LABEL: graph.func @fusions
// CHECK: plan.call @tanh.0(%{{.*}}) :
// CHECK: plan.call @tanh.0(%{{.*}}) :
// CHECK: plan.call @tanh.1(%{{.*}}, %{{.*}}) :
graph.func @fusions(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = graph.fusion(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = math.tanh %a : tensor<4xf32>
    graph.yield %1 : tensor<4xf32>
  }
  %2 = graph.fusion(%y) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = math.tanh %a : tensor<4xf32>
    graph.yield %1 : tensor<4xf32>
  }
  %3 = graph.fusion(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %1 = math.tanh %a : tensor<4xf32>
    graph.yield %1 : tensor<4xf32>
  }
  graph.return %0, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Of an operand that is sliced the kernel reads the box, 2 x 3 of 8 x 3 elements, and all of it where
// something else reads it too.
// CHECK: plan.kernel @slice{{.*}} body {{.*}} cost {{.*}}, 4.800000e+01
// CHECK: plan.kernel @slice{{.*}} body {{.*}} cost {{.*}}, 1.200000e+02
// CHECK-LABEL: graph.func @boxes
graph.func @boxes(%x: tensor<8x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = graph.fusion(%x) : (tensor<8x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%a: tensor<8x3xf32>):
    %1 = graph.slice %a at [4, 0] sizes [2, 3] : (tensor<8x3xf32>) -> tensor<2x3xf32>
    graph.yield %1 : tensor<2x3xf32>
  }
  %2 = graph.fusion(%x) : (tensor<8x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%a: tensor<8x3xf32>):
    %1 = graph.slice %a at [4, 0] sizes [2, 3] : (tensor<8x3xf32>) -> tensor<2x3xf32>
    %3 = graph.reduce sum %a dims [0] : (tensor<8x3xf32>) -> tensor<3xf32>
    %4 = graph.broadcast %3 dims [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %5 = arith.addf %1, %4 : tensor<2x3xf32>
    graph.yield %5 : tensor<2x3xf32>
  }
  graph.return %0, %2 : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// A constant that nobody uses goes.
// CHECK-NOT: plan.kernel
// CHECK-LABEL: graph.func @unused
// CHECK-NEXT: graph.return
graph.func @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  %unused = arith.constant dense<1.0> : tensor<4xf32>
  graph.return %x : tensor<4xf32>
}

// -----

// A constant is written for each use, but as a count of rows it stays one value, which tells that rows that one leaves
// out are those that the other does not read.
// CHECK-LABEL: graph.func @counted
// CHECK-COUNT-1: plan.call @fill
// CHECK-NOT: plan.call @fill
// CHECK: graph.return
// CHECK-LABEL: graph.func @added
// CHECK-DAG: %[[COUNT:.*]] = plan.call @fill.{{[0-9]+}}() : () -> tensor<3xi32>
// CHECK-DAG: %[[OTHER:.*]] = plan.call @fill.{{[0-9]+}}() : () -> tensor<3xi32>
// CHECK-DAG: %[[ROWS:.*]] = plan.call @silu.{{[0-9]+}}(%{{.*}}, %[[COUNT]])
// CHECK-DAG: plan.call @grouped_matmul.{{[0-9]+}}(%[[ROWS]], %{{.*}}, %[[COUNT]])
// CHECK: graph.return %{{.*}}, %[[OTHER]]
graph.func @counted(%x: tensor<8x4xf32>, %m: tensor<2x4x4xf32>) -> tensor<8x4xf32> {
  %o = arith.constant dense<3> : tensor<3xi32>
  %a = graph.fusion(%x, %o) rows [1, 0, 2] : (tensor<8x4xf32>, tensor<3xi32>) -> tensor<8x4xf32> {
  ^bb0(%b: tensor<8x4xf32>, %c: tensor<3xi32>):
    %s = graph.silu %b : tensor<8x4xf32>
    graph.yield %s : tensor<8x4xf32>
  }
  %y = graph.grouped_dot %a, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  graph.return %y : tensor<8x4xf32>
}
graph.func @added(%x: tensor<8x4xf32>, %m: tensor<2x4x4xf32>) -> (tensor<8x4xf32>, tensor<3xi32>) {
  %o = arith.constant dense<3> : tensor<3xi32>
  %a = graph.fusion(%x, %o) rows [1, 0, 2] : (tensor<8x4xf32>, tensor<3xi32>) -> tensor<8x4xf32> {
  ^bb0(%b: tensor<8x4xf32>, %c: tensor<3xi32>):
    %s = graph.silu %b : tensor<8x4xf32>
    graph.yield %s : tensor<8x4xf32>
  }
  %y = graph.grouped_dot %a, %m at %o : (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  graph.return %y, %o : tensor<8x4xf32>, tensor<3xi32>
}

//--- contractions.mlir
// What a kernel refuses is an error of the operation.
// REFUSED: error: 'graph.dot_general' op cannot run as kernel 'matmul': kernel 'matmul': threads is 0
// REFUSED: error: 'graph.fusion' op cannot run as kernel 'matmul': kernel 'matmul': threads is 0

// Sums in f32 of narrow products stay that, also where operands are rearranged first.
// CHECK: plan.kernel @transpose.0
// CHECK: plan.kernel @matmul.0
// CHECK-SAME: #plan.arg<write, tensor<2x3x5x5xf32>>
// CHECK-LABEL: graph.func @accumulators
// CHECK: %[[D:.*]] = plan.call @matmul.0({{.*}} -> tensor<2x3x5x5xf32>
// CHECK: graph.return %[[D]]
graph.func @accumulators(%q: tensor<2x5x3x4xbf16>, %k: tensor<2x5x3x4xbf16>) -> tensor<2x3x5x5xf32> {
  %0 = graph.dot_general %q, %k batch [0, 2] x [0, 2] contract [3] x [3] : (tensor<2x5x3x4xbf16>, tensor<2x5x3x4xbf16>) -> tensor<2x3x5x5xf32>
  graph.return %0 : tensor<2x3x5x5xf32>
}

// -----

// A group that begins with a contraction is its kernel, with the rest as epilogue: rows are one dimension there, columns
// too, and the result goes where the epilogue puts it. Equal ones share a kernel.
// CHECK: plan.kernel @matmul.0 registered "matmul"
// CHECK-NOT: c_strides
// CHECK-SAME: body @matmul.0.epilogue [#plan.arg<read, tensor<2x3x5xbf16>>, #plan.arg<read, tensor<5x4xbf16>>,
// CHECK-SAME: #plan.arg<read, tensor<6x4xf32>>, #plan.arg<read, tensor<6xf32>>, #plan.arg<read, tensor<4xbf16>>, #plan.arg<read, tensor<f32>>,
// CHECK-SAME: #plan.arg<write, tensor<6x4xbf16>>, #plan.arg<write, tensor<6x4xbf16>>
// CHECK: func.func @matmul.0.epilogue(%[[P:.*]]: tensor<6x4xf32>, %[[R:.*]]: tensor<6x4xf32>, %[[ROW:.*]]: tensor<6xf32>, %[[COL:.*]]: tensor<4xbf16>, %[[ONE:.*]]: tensor<f32>) -> (tensor<6x4xbf16>, tensor<6x4xbf16>)
// CHECK-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[P]] : tensor<6x4xf32> to tensor<6x4xbf16>
// CHECK-NEXT: %[[COLS:.*]] = graph.broadcast %[[COL]] dims [1] : (tensor<4xbf16>) -> tensor<6x4xbf16>
// CHECK-NEXT: %[[BIASED:.*]] = arith.addf %[[ROUNDED]], %[[COLS]] : tensor<6x4xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[BIASED]]
// CHECK-NEXT: %[[ROWS:.*]] = graph.broadcast %[[ROW]] dims [0] : (tensor<6xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: arith.mulf %[[WIDE]], %[[ROWS]]
// CHECK-NEXT: graph.broadcast %[[ONE]] dims [] : (tensor<f32>) -> tensor<6x4xf32>
// CHECK-NEXT: arith.constant dense<5.000000e-01> : tensor<6x4xf32>
// CHECK: arith.addf %{{.*}}, %[[R]] : tensor<6x4xf32>
// CHECK-NEXT: %[[N:.*]] = arith.truncf
// CHECK-NEXT: return %[[N]], %[[ROUNDED]]
// CHECK-NOT: plan.kernel
// CHECK-LABEL: graph.func @epilogue
// CHECK-COUNT-2: plan.call @matmul.0
// CHECK: graph.return
graph.func @epilogue(%x: tensor<2x3x5xbf16>, %w: tensor<5x4xbf16>, %r: tensor<2x3x4xf32>, %row: tensor<2x3xf32>, %col: tensor<4xbf16>,
                     %one: tensor<f32>) -> (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) {
  %0:2 = graph.fusion(%x, %w, %r, %row, %col, %one)
      : (tensor<2x3x5xbf16>, tensor<5x4xbf16>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<4xbf16>, tensor<f32>) -> (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) {
  ^bb0(%a: tensor<2x3x5xbf16>, %b: tensor<5x4xbf16>, %c: tensor<2x3x4xf32>, %d: tensor<2x3xf32>, %e: tensor<4xbf16>, %f: tensor<f32>):
    %2 = graph.dot_general %a, %b contract [2] x [0] : (tensor<2x3x5xbf16>, tensor<5x4xbf16>) -> tensor<2x3x4xbf16>
    %3 = graph.broadcast %e dims [2] : (tensor<4xbf16>) -> tensor<2x3x4xbf16>
    %4 = arith.addf %2, %3 : tensor<2x3x4xbf16>
    %5 = arith.extf %4 : tensor<2x3x4xbf16> to tensor<2x3x4xf32>
    %6 = graph.broadcast %d dims [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x4xf32>
    %7 = arith.mulf %5, %6 : tensor<2x3x4xf32>
    %8 = graph.broadcast %f dims [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %half = arith.constant dense<0.5> : tensor<2x3x4xf32>
    %9 = arith.mulf %8, %half : tensor<2x3x4xf32>
    %10 = arith.addf %7, %9 : tensor<2x3x4xf32>
    %11 = arith.addf %10, %c : tensor<2x3x4xf32>
    %12 = arith.truncf %11 : tensor<2x3x4xf32> to tensor<2x3x4xbf16>
    graph.yield %12, %2 : tensor<2x3x4xbf16>, tensor<2x3x4xbf16>
  }
  %1:2 = graph.fusion(%x, %w, %r, %row, %col, %one)
      : (tensor<2x3x5xbf16>, tensor<5x4xbf16>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<4xbf16>, tensor<f32>) -> (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) {
  ^bb0(%a: tensor<2x3x5xbf16>, %b: tensor<5x4xbf16>, %c: tensor<2x3x4xf32>, %d: tensor<2x3xf32>, %e: tensor<4xbf16>, %f: tensor<f32>):
    %2 = graph.dot_general %a, %b contract [2] x [0] : (tensor<2x3x5xbf16>, tensor<5x4xbf16>) -> tensor<2x3x4xbf16>
    %3 = graph.broadcast %e dims [2] : (tensor<4xbf16>) -> tensor<2x3x4xbf16>
    %4 = arith.addf %2, %3 : tensor<2x3x4xbf16>
    %5 = arith.extf %4 : tensor<2x3x4xbf16> to tensor<2x3x4xf32>
    %6 = graph.broadcast %d dims [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x4xf32>
    %7 = arith.mulf %5, %6 : tensor<2x3x4xf32>
    %8 = graph.broadcast %f dims [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %half = arith.constant dense<0.5> : tensor<2x3x4xf32>
    %9 = arith.mulf %8, %half : tensor<2x3x4xf32>
    %10 = arith.addf %7, %9 : tensor<2x3x4xf32>
    %11 = arith.addf %10, %c : tensor<2x3x4xf32>
    %12 = arith.truncf %11 : tensor<2x3x4xf32> to tensor<2x3x4xbf16>
    graph.yield %12, %2 : tensor<2x3x4xbf16>, tensor<2x3x4xbf16>
  }
  graph.return %0#0, %0#1, %1#0, %1#1 : tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>
}

//--- error.mlir
// ERROR: error: 'math.tanh' op has no kernel
graph.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.tanh %x : tensor<4xf32>
  graph.return %0 : tensor<4xf32>
}
