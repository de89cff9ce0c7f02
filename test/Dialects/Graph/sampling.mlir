// RUN: bowline-opt %s --verify-roundtrip | FileCheck %s

// CHECK: graph.func step @step
graph.func step @step(%logits: tensor<3x50xf32>, %temperature: tensor<3xf32> {graph.limit = 1000 : i64}, %top_k: tensor<3xi32> {graph.limit = 51 : i64},
                      %top_p: tensor<3xf32> {graph.limit = 1 : i64}, %seeds: tensor<3x2xi32>, %positions: tensor<3xi32>, %wanted: tensor<3xi32> {graph.limit = 6 : i64})
    -> (tensor<3xi32>, tensor<3xf32>, tensor<3x4xi32>, tensor<3x4xf32>) {
  // CHECK: graph.sample_tokens %{{.*}} temperature %{{.*}} top_k %{{.*}} top_p %{{.*}} seeds %{{.*}} at %{{.*}} wanted %{{.*}} : (tensor<3x50xf32>, tensor<3xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3x2xi32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>, tensor<3xf32>, tensor<3x4xi32>, tensor<3x4xf32>)
  %tokens, %logprobs, %likely, %likely_logprobs = graph.sample_tokens %logits temperature %temperature top_k %top_k top_p %top_p seeds %seeds at %positions wanted %wanted
      : (tensor<3x50xf32>, tensor<3xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3x2xi32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>, tensor<3xf32>, tensor<3x4xi32>, tensor<3x4xf32>)
  graph.return %tokens, %logprobs, %likely, %likely_logprobs : tensor<3xi32>, tensor<3xf32>, tensor<3x4xi32>, tensor<3x4xf32>
}
