// A model may have parameters with the names that flags give to a strategy and to its mesh.
// RUN: bowline-opt %s --add-strategy='mesh=tp=2' --apply-strategy | FileCheck %s

// CHECK:      dist.mesh @mesh_{{[0-9]+}} ["tp"] [2]
// CHECK-NEXT: dist.strategy @strategy_{{[0-9]+}} {
// CHECK-NEXT:   mesh @mesh ["tp"] [2]
// CHECK:      graph.param @mesh
// CHECK:      graph.param @strategy
graph.param @mesh : tensor<4x4xf32> init(#graph.fill<0.0>) key("mesh") role(none)
graph.param @strategy : tensor<4xf32> init(#graph.fill<0.0>) key("strategy") role(none)
