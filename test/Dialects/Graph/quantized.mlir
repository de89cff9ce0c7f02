// Weights in blocks of bits.
// RUN: bowline-opt %s --verify-roundtrip | FileCheck %s

// CHECK: graph.param frozen @w : tensor<5x2x20xui8> init(#graph.fill<0.0>) key("w") format("q4_1")
graph.param frozen @w : tensor<5x2x20xui8> init(#graph.fill<0.0>) key("w") format("q4_1")
graph.param frozen @table : tensor<7x2x34xui8> init(#graph.fill<0.0>) key("table") format("q8_0")

graph.func @f(%tokens: tensor<1x3xi32>) -> tensor<1x3x5xf32> {
  %table = graph.read @table : tensor<7x2x34xui8>
  // CHECK: graph.quantized_gather %{{.*}}[%{{.*}}] format "q8_0" : (tensor<7x2x34xui8>, tensor<1x3xi32>) -> tensor<1x3x64xf32>
  %x = graph.quantized_gather %table[%tokens] format "q8_0" : (tensor<7x2x34xui8>, tensor<1x3xi32>) -> tensor<1x3x64xf32>
  %w = graph.read @w : tensor<5x2x20xui8>
  // CHECK: graph.quantized_dot %{{.*}}, %{{.*}} format "q4_1" : (tensor<1x3x64xf32>, tensor<5x2x20xui8>) -> tensor<1x3x5xf32>
  %y = graph.quantized_dot %x, %w format "q4_1" : (tensor<1x3x64xf32>, tensor<5x2x20xui8>) -> tensor<1x3x5xf32>
  graph.return %y : tensor<1x3x5xf32>
}
