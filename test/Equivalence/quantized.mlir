// A program of weights in blocks of bits keeps what it computes down to commands on bytes.
// RUN: bowline-compile %s --mode generate --threads 1 --verify-each=equiv -o %t.plan 2>&1 | FileCheck %s
// RUN: bowline-check %t.plan | FileCheck %s --check-prefix=SOUND
// CHECK: equivalence: {{.*}} steps kept what the program computes
// SOUND: sound

graph.param frozen @w : tensor<5x2x20xui8> init(#graph.fill<0.0>) key("w") format("q4_1")
graph.param frozen @table : tensor<7x2x34xui8> init(#graph.fill<0.0>) key("table") format("q8_0")

graph.func generate @f(%tokens: tensor<1x3xi32> {graph.name = "tokens", graph.limit = 7 : i64})
    -> (tensor<1x3x5xf32> {graph.name = "y"}) {
  %table = graph.read @table : tensor<7x2x34xui8>
  %x = graph.quantized_gather %table[%tokens] format "q8_0" : (tensor<7x2x34xui8>, tensor<1x3xi32>) -> tensor<1x3x64xf32>
  %s = graph.silu %x : tensor<1x3x64xf32>
  %w = graph.read @w : tensor<5x2x20xui8>
  %y = graph.quantized_dot %s, %w format "q4_1" : (tensor<1x3x64xf32>, tensor<5x2x20xui8>) -> tensor<1x3x5xf32>
  graph.return %y : tensor<1x3x5xf32>
}
