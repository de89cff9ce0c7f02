// Every operation parses, prints in its own form and survives the round trip.
// RUN: bowline-opt %s | FileCheck %s

// CHECK: graph.param @embed.weight : tensor<7x4xf32> init(#graph.normal<0.02>) key("model.embed_tokens.weight")
graph.param @embed.weight : tensor<7x4xf32> init(#graph.normal<2.0e-2>) key("model.embed_tokens.weight")
// What a parameter is to its layer, and which layer that is.
// CHECK: graph.param @table : tensor<4x4xf32> init(#graph.fill<0.0>) key("0") role(vocabulary)
graph.param @table : tensor<4x4xf32> init(#graph.fill<0.0>) key("0") role(vocabulary)
// CHECK: graph.param @queries : tensor<4x4xf32> init(#graph.fill<0.0>) key("1") role(column) layer(0) {note = "x"}
graph.param @queries : tensor<4x4xf32> init(#graph.fill<0.0>) key("1") role(column) layer(0) {note = "x"}
// CHECK: graph.param @keys : tensor<2x4xf32> init(#graph.fill<0.0>) key("2") role(keys shared 2) layer(0)
graph.param @keys : tensor<2x4xf32> init(#graph.fill<0.0>) key("2") role(keys shared 2) layer(0)
// CHECK: graph.param @values : tensor<4x4xf32> init(#graph.fill<0.0>) key("3") role(keys) layer(0)
graph.param @values : tensor<4x4xf32> init(#graph.fill<0.0>) key("3") role(keys shared 1) layer(0)
// CHECK: graph.param @out : tensor<4x4xf32> init(#graph.fill<0.0>) key("4") role(row) layer(1)
graph.param @out : tensor<4x4xf32> init(#graph.fill<0.0>) key("4") role(row) layer(1)
// CHECK: graph.param @all : tensor<12x4xf32> init(#graph.fill<0.0>) key("5") role(fused 8, 2, 2) layer(1)
graph.param @all : tensor<12x4xf32> init(#graph.fill<0.0>) key("5") role(fused 8, 2, 2) layer(1)
// CHECK: graph.param @experts : tensor<8x4x4xf32> init(#graph.fill<0.0>) key("6") role(expert) layer(1)
graph.param @experts : tensor<8x4x4xf32> init(#graph.fill<0.0>) key("6") role(expert) layer(1)
// CHECK: graph.param @norm : tensor<4xf32> init(#graph.fill<0.0>) key("7") role(none) {other = #graph.role<fused 1, 2>}
graph.param @norm : tensor<4xf32> init(#graph.fill<0.0>) key("7") role(none) {other = #graph.role<fused 1, 2>}
// CHECK: graph.param @of_a_layer : tensor<4xf32> init(#graph.fill<0.0>) key("8") layer(3)
graph.param @of_a_layer : tensor<4xf32> init(#graph.fill<0.0>) key("8") layer(3)
// CHECK: graph.param frozen @scale : tensor<4xf32> init(#graph.fill<1.0>) key("scale")
graph.param frozen @scale : tensor<4xf32> init(#graph.fill<1.0>) key("scale")
// CHECK: graph.param @embed.rounded : tensor<7x4xbf16> init(#graph.normal<0.02>) key("model.embed_tokens.weight") mirror_of @embed.weight
graph.param @embed.rounded : tensor<7x4xbf16> init(#graph.normal<0.02>) key("model.embed_tokens.weight") mirror_of @embed.weight
// CHECK: graph.param @table.rounded : tensor<4x4xbf16> init(#graph.fill<0.0>) key("0") mirror_of @table role(vocabulary)
graph.param @table.rounded : tensor<4x4xbf16> init(#graph.fill<0.0>) key("0") mirror_of @table role(vocabulary)
// CHECK: graph.state @step saved|step : tensor<i32> init(#graph.fill<0.0>)
graph.state @step saved|step : tensor<i32> init(#graph.fill<0.0>)
// CHECK: graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
graph.state @loss_sum accumulator : tensor<f32> init(#graph.fill<0.0>)
// CHECK: graph.state @embed.weight.moment1 saved of @embed.weight : tensor<7x4xf32> init(#graph.fill<1.0e-30>)
graph.state @embed.weight.moment1 saved of @embed.weight : tensor<7x4xf32> init(#graph.fill<1.0e-30>)
// CHECK: graph.state @cache per_request : tensor<2x3xbf16> init(#graph.fill<0.0>)
graph.state @cache per_request : tensor<2x3xbf16> init(#graph.fill<0.0>)
// CHECK: graph.state @kept stash : tensor<7x4xbf16> init(#graph.fill<0.0>) slots 3
graph.state @kept stash : tensor<7x4xbf16> init(#graph.fill<0.0>) slots 3

// Arguments print under their port's name and values that were read under their variable's.
// CHECK-LABEL: graph.func @variables(
// CHECK-SAME: %tokens: tensor<2x3xi32> {graph.limit = 7 : i64, graph.name = "tokens"}, %arg1: tensor<f32>
// CHECK-SAME: -> (tensor<7x4xf32> {graph.name = "table"})
graph.func @variables(%tokens: tensor<2x3xi32> {graph.name = "tokens", graph.limit = 7 : i64}, %scale: tensor<f32>)
    -> (tensor<7x4xf32> {graph.name = "table"}) {
  // CHECK: %embed.weight = graph.read @embed.weight : tensor<7x4xf32>
  %table = graph.read @embed.weight : tensor<7x4xf32>
  // CHECK: graph.write @loss_sum, %arg1 : tensor<f32>
  graph.write @loss_sum, %scale : tensor<f32>
  // CHECK: graph.return %embed.weight : tensor<7x4xf32>
  graph.return %table : tensor<7x4xf32>
}

// CHECK-LABEL: graph.func private @nothing() {
// CHECK-NEXT: graph.return
graph.func private @nothing() {
  graph.return
}

// CHECK: graph.entry train_step @train_step [@nothing, @variables] repeat [4, 1]
graph.entry train_step @train_step [@nothing, @variables] repeat [4, 1]
// CHECK: graph.entry step @serve bucket 8 [@nothing] repeat [1]
graph.entry step @serve bucket 8 [@nothing] repeat [1]
// CHECK: graph.entry @pipelined_step [@nothing, @variables] repeat [1, 1] timeline [0, 1, 0, 0, 1, 0] microbatches 2
graph.entry @pipelined_step [@nothing, @variables] repeat [1, 1] timeline [0, 1, 0, 0, 1, 0] microbatches 2

// CHECK-LABEL: graph.func @contraction
graph.func @contraction(%x: tensor<5x2x3xf32>, %w: tensor<4x3xf32>, %v: tensor<2x3x5xf32>, %s: tensor<2xbf16>) {
  // CHECK: graph.dot_general %{{.*}}, %{{.*}} contract [2] x [1] : (tensor<5x2x3xf32>, tensor<4x3xf32>) -> tensor<5x2x4xf32>
  %0 = graph.dot_general %x, %w contract [2] x [1] : (tensor<5x2x3xf32>, tensor<4x3xf32>) -> tensor<5x2x4xf32>
  // CHECK: graph.dot_general %{{.*}}, %{{.*}} batch [1, 2] x [0, 1] contract [0] x [2] : {{.*}} -> tensor<2x3xf32>
  %1 = graph.dot_general %x, %v batch [1, 2] x [0, 1] contract [0] x [2]
     : (tensor<5x2x3xf32>, tensor<2x3x5xf32>) -> tensor<2x3xf32>
  // CHECK: graph.dot_general %{{.*}}, %{{.*}} batch [0] x [0] : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<2xbf16>
  %2 = graph.dot_general %s, %s batch [0] x [0] : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<2xbf16>
  // An outer product has neither; the form with the word `contract` is printed.
  // CHECK: graph.dot_general %{{.*}}, %{{.*}} contract [] x [] : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<2x2xbf16>
  %3 = graph.dot_general %s, %s : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<2x2xbf16>
  // The sum of narrow products may be given as it is.
  // CHECK: graph.dot_general %{{.*}}, %{{.*}} contract [0] x [0] : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<f32>
  %wide = graph.dot_general %s, %s contract [0] x [0] : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<f32>
  // CHECK: graph.grouped_dot %{{.*}}, %{{.*}} at %{{.*}} : (tensor<4x3xf32>, tensor<2x3x5xf32>, tensor<3xi32>) -> tensor<4x5xf32>
  %offsets = arith.constant dense<[0, 1, 4]> : tensor<3xi32>
  %experts = arith.constant dense<0.5> : tensor<2x3x5xf32>
  %rows = graph.grouped_dot %w, %experts at %offsets
      : (tensor<4x3xf32>, tensor<2x3x5xf32>, tensor<3xi32>) -> tensor<4x5xf32>
  // CHECK: graph.grouped_dot transposed %{{.*}}, %{{.*}} at %{{.*}} : (tensor<4x5xf32>, tensor<2x3x5xf32>, tensor<3xi32>) -> tensor<4x3xf32>
  %back = graph.grouped_dot transposed %rows, %experts at %offsets
      : (tensor<4x5xf32>, tensor<2x3x5xf32>, tensor<3xi32>) -> tensor<4x3xf32>
  // Groups that the offsets lack.
  // CHECK: graph.grouped_outer %{{.*}}, %{{.*}} at %{{.*}} : (tensor<4x3xf32>, tensor<4x5xf32>, tensor<3xi32>) -> tensor<7x3x5xf32>
  %outer = graph.grouped_outer %back, %rows at %offsets
      : (tensor<4x3xf32>, tensor<4x5xf32>, tensor<3xi32>) -> tensor<7x3x5xf32>
  // CHECK: graph.valid_rows %{{.*}} of %{{.*}} : (tensor<4x5xf32>, tensor<3xi32>) -> tensor<4x5xf32>
  %valid = graph.valid_rows %rows of %offsets : (tensor<4x5xf32>, tensor<3xi32>) -> tensor<4x5xf32>
  // CHECK: graph.fusion(%{{.*}}, %{{.*}}) rows [1, 0, 2] : (tensor<4x5xf32>, tensor<3xi32>) -> tensor<4x5xf32>
  %left = graph.fusion(%valid, %offsets) rows [1, 0, 2] : (tensor<4x5xf32>, tensor<3xi32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x5xf32>, %n: tensor<3xi32>):
    %twice = arith.addf %a, %a : tensor<4x5xf32>
    graph.yield %twice : tensor<4x5xf32>
  }
  // CHECK: graph.reduce sum %{{.*}} dims [0, 2] : (tensor<5x2x3xf32>) -> tensor<2xf32>
  %4 = graph.reduce sum %x dims [0, 2] : (tensor<5x2x3xf32>) -> tensor<2xf32>
  // CHECK: graph.reduce max %{{.*}} dims [] : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %5 = graph.reduce max %w dims [] : (tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK: graph.broadcast %{{.*}} dims [1] : (tensor<2xbf16>) -> tensor<6x2xbf16>
  %6 = graph.broadcast %s dims [1] : (tensor<2xbf16>) -> tensor<6x2xbf16>
  graph.return
}

// CHECK-LABEL: graph.func @shape
graph.func @shape(%x: tensor<5x2x3xf32>, %mask: tensor<4xi1>) {
  // CHECK: graph.transpose %{{.*}} perm [2, 0, 1] : (tensor<5x2x3xf32>) -> tensor<3x5x2xf32>
  %0 = graph.transpose %x perm [2, 0, 1] : (tensor<5x2x3xf32>) -> tensor<3x5x2xf32>
  // CHECK: graph.reshape %{{.*}} : (tensor<5x2x3xf32>) -> tensor<30xf32>
  %1 = graph.reshape %x : (tensor<5x2x3xf32>) -> tensor<30xf32>
  // CHECK: graph.slice %{{.*}} at [1, 0, 2] sizes [4, 1, 1] : (tensor<5x2x3xf32>) -> tensor<4x1x1xf32>
  %2 = graph.slice %x at [1, 0, 2] sizes [4, 1, 1] : (tensor<5x2x3xf32>) -> tensor<4x1x1xf32>
  // CHECK: graph.pad %{{.*}} low [0, 1, 0] high [2, 0, 0] : (tensor<5x2x3xf32>) -> tensor<7x3x3xf32>
  %3 = graph.pad %x low [0, 1, 0] high [2, 0, 0] : (tensor<5x2x3xf32>) -> tensor<7x3x3xf32>
  // CHECK: graph.concat %{{.*}}, %{{.*}} dim 0 : (tensor<4xi1>, tensor<4xi1>) -> tensor<8xi1>
  %4 = graph.concat %mask, %mask dim 0 : (tensor<4xi1>, tensor<4xi1>) -> tensor<8xi1>
  graph.return
}

// CHECK-LABEL: graph.func @indexing
graph.func @indexing(%table: tensor<7x4xf32>, %ids: tensor<2x3xi32>) {
  // CHECK: graph.gather %{{.*}}[%{{.*}}] in_range : (tensor<7x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
  %known = graph.gather %table[%ids] in_range : (tensor<7x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
  // CHECK: graph.gather %{{.*}}[%{{.*}}] : (tensor<7x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
  %0 = graph.gather %table[%ids] : (tensor<7x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
  // CHECK: graph.scatter_add %{{.*}} at %{{.*}} : (tensor<2x3x4xf32>, tensor<2x3xi32>) -> tensor<7x4xf32>
  %1 = graph.scatter_add %0 at %ids : (tensor<2x3x4xf32>, tensor<2x3xi32>) -> tensor<7x4xf32>
  // CHECK: graph.iota dim 1 : tensor<2x3xi64>
  %2 = graph.iota dim 1 : tensor<2x3xi64>
  // CHECK: graph.random normal(0.02) seed(1) stream(-7) : tensor<3xf32>
  %3 = graph.random normal(0.02) seed(1) stream(-7) : tensor<3xf32>
  %place = arith.constant dense<1> : tensor<i32>
  // CHECK: graph.random normal(0.02) seed(1) stream(7) shard %{{.*}} along [0] of [6, 2] : tensor<3x2xf32>
  %part = graph.random normal(0.02) seed(1) stream(7) shard %place along [0] of [6, 2] : tensor<3x2xf32>
  // CHECK: graph.random normal(0.02) seed(1) stream(7) of [2, 3] : tensor<4x3xf32>
  %padded = graph.random normal(0.02) seed(1) stream(7) of [2, 3] : tensor<4x3xf32>
  graph.return
}

// CHECK-LABEL: graph.func @layers
graph.func @layers(%x: tensor<2x3x4x6xf32>, %kv: tensor<2x5x2x6xf32>, %v: tensor<6xf32>, %p: tensor<3xi32>) {
  // CHECK: graph.logistic %{{.*}} : tensor<6xf32>
  %0 = graph.logistic %v : tensor<6xf32>
  // CHECK: graph.silu %{{.*}} : tensor<6xf32>
  %1 = graph.silu %v : tensor<6xf32>
  // CHECK: graph.gelu erf %{{.*}} : tensor<6xf32>
  %2 = graph.gelu erf %v : tensor<6xf32>
  // CHECK: graph.gelu tanh %{{.*}} : tensor<6xf32>
  %3 = graph.gelu tanh %v : tensor<6xf32>
  // CHECK: graph.softcap %{{.*}} cap 30.0 : tensor<6xf32>
  %capped = graph.softcap %v cap 30.0 : tensor<6xf32>
  // CHECK: graph.rms_norm %{{.*}}, %{{.*}} eps 1.0e-05 : (tensor<2x3x4x6xf32>, tensor<6xf32>) -> tensor<2x3x4x6xf32>
  %4 = graph.rms_norm %x, %v eps 1.0e-5 : (tensor<2x3x4x6xf32>, tensor<6xf32>) -> tensor<2x3x4x6xf32>
  // CHECK: graph.layer_norm %{{.*}}, %{{.*}}, %{{.*}} eps 0.0 : {{.*}} -> tensor<2x3x4x6xf32>
  %5 = graph.layer_norm %x, %v, %v eps 0.0
     : (tensor<2x3x4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x3x4x6xf32>
  // CHECK: %cosine, %sine = graph.rope_angles %{{.*}} theta 10000.0 : (tensor<3xi32>) -> (tensor<3x3xf32>, tensor<3x3xf32>)
  %cos, %sin = graph.rope_angles %p theta 10000.0 : (tensor<3xi32>) -> (tensor<3x3xf32>, tensor<3x3xf32>)
  // CHECK: graph.rope_angles %{{.*}} theta 10000.0 scaled <factor 4.0> :
  %linear:2 = graph.rope_angles %p theta 10000.0 scaled <factor 4.0> : (tensor<3xi32>) -> (tensor<3x3xf32>, tensor<3x3xf32>)
  // CHECK: graph.rope_angles %{{.*}} theta 10000.0 scaled <factor 8.0 original 8192 low 1.0 high 4.0> :
  %turns:2 = graph.rope_angles %p theta 10000.0 scaled <factor 8.0 original 8192 low 1.0 high 4.0>
     : (tensor<3xi32>) -> (tensor<3x3xf32>, tensor<3x3xf32>)
  // CHECK: graph.rope %{{.*}}, %cosine, %sine : {{.*}} -> tensor<2x3x4x6xf32>
  %6 = graph.rope %x, %cos, %sin
     : (tensor<2x3x4x6xf32>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<2x3x4x6xf32>
  // CHECK: graph.rope inverse %{{.*}}, %cosine, %sine : {{.*}} -> tensor<2x3x4x6xf32>
  %7 = graph.rope inverse %x, %cos, %sin
     : (tensor<2x3x4x6xf32>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<2x3x4x6xf32>
  // Narrow values are rotated by angles in f32, or in their own type.
  // CHECK: graph.rope %{{.*}}, %cosine, %sine : (tensor<2x3x4x6xbf16>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<2x3x4x6xbf16>
  %narrow = arith.truncf %x : tensor<2x3x4x6xf32> to tensor<2x3x4x6xbf16>
  %rotated = graph.rope %narrow, %cos, %sin
     : (tensor<2x3x4x6xbf16>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<2x3x4x6xbf16>
  // CHECK: graph.rope inverse {{.*}} : (tensor<2x3x4x6xbf16>, tensor<3x3xbf16>, tensor<3x3xbf16>) -> tensor<2x3x4x6xbf16>
  %narrowCos = arith.truncf %cos : tensor<3x3xf32> to tensor<3x3xbf16>
  %narrowSin = arith.truncf %sin : tensor<3x3xf32> to tensor<3x3xbf16>
  %back = graph.rope inverse %rotated, %narrowCos, %narrowSin
     : (tensor<2x3x4x6xbf16>, tensor<3x3xbf16>, tensor<3x3xbf16>) -> tensor<2x3x4x6xbf16>
  // CHECK: graph.attention %{{.*}}, %{{.*}}, %{{.*}} scale 0.4082482904638631 : {{.*}} -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  %8, %9 = graph.attention %x, %kv, %kv scale 0.40824829046386307
     : (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  // CHECK: %[[OUT:.*]], %[[LSE:.*]] = graph.attention causal %{{.*}}, %{{.*}}, %{{.*}} scale 0.5
  %10, %11 = graph.attention causal %x, %kv, %kv scale 0.5
     : (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  // CHECK: graph.attention causal window 2 %{{.*}}, %{{.*}}, %{{.*}} scale 0.5
  %near:2 = graph.attention causal window 2 %x, %kv, %kv scale 0.5
      : (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x4x3xf32>)
  // CHECK: graph.attention_grad causal %{{.*}}, %{{.*}}, %{{.*}}, %[[OUT]], %[[LSE]], %{{.*}} scale 0.5
  %12, %13, %14 = graph.attention_grad causal %x, %kv, %kv, %10, %11, %x scale 0.5
     : (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>, tensor<2x3x4x6xf32>, tensor<2x4x3xf32>,
        tensor<2x3x4x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32>)
  graph.return
}

// CHECK-LABEL: graph.func @fusion
graph.func @fusion(%x: tensor<6xf32>) -> tensor<6xf32> {
  // CHECK: %[[F:.*]] = graph.fusion(%{{.*}}) : (tensor<6xf32>) -> tensor<6xf32> {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<6xf32>):
  // CHECK-NEXT: %[[S:.*]] = graph.silu %[[A]] : tensor<6xf32>
  // CHECK-NEXT: graph.yield %[[S]] : tensor<6xf32>
  %0 = graph.fusion(%x) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%a: tensor<6xf32>):
    %1 = graph.silu %a : tensor<6xf32>
    graph.yield %1 : tensor<6xf32>
  }
  // CHECK: graph.return %[[F]]
  graph.return %0 : tensor<6xf32>
}

// Statistics and losses of narrow types are f32.
// CHECK-LABEL: graph.func loss @loss
graph.func loss @loss(%logits: tensor<2x3x7xbf16>, %labels: tensor<2x3xi32>) {
  // CHECK: %loss, %logsumexp = graph.softmax_cross_entropy %{{.*}}, %{{.*}} : (tensor<2x3x7xbf16>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %loss, %lse = graph.softmax_cross_entropy %logits, %labels
     : (tensor<2x3x7xbf16>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: graph.softmax_cross_entropy_grad %{{.*}}, %{{.*}}, %logsumexp, %loss : {{.*}} -> tensor<2x3x7xbf16>
  %grad = graph.softmax_cross_entropy_grad %logits, %labels, %lse, %loss
     : (tensor<2x3x7xbf16>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3x7xbf16>
  graph.return
}
