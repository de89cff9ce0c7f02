// Wrong options are refused; without any the module stays as it is.
// RUN: bowline-opt %s --apply-strategy | FileCheck %s
// RUN: not bowline-opt %s --apply-strategy=mesh=dp=2,tpx=2 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not bowline-opt %s --apply-strategy="mesh=dp=2 zero=7" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: sed 's/^\/\/ STRATEGY //' %s > %t.both.mlir
// RUN: not bowline-opt %t.both.mlir --apply-strategy=mesh=dp=2 2>&1 | FileCheck %s --check-prefix=BOTH

// CHECK-NOT: dist.
// CHECK: graph.param @w
// AXIS: error: {{.*}}mesh 'dp=2,tpx=2' has axis 'tpx', which nothing uses; the nearest that has a use is 'tp'
// ZERO: error: {{.*}}there is no ZeRO level 7; the nearest of 0 to 3 is 3
// BOTH: error: {{.*}}and the option mesh=dp=2 both say how to divide the program; remove one
// STRATEGY dist.strategy @s { mesh @mesh ["dp"] [2] }
graph.param @w : tensor<4xf32> init(#graph.fill<0.0>) key("w")
