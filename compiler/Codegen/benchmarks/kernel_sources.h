//===- kernel_sources.h - One kernel of each class that training generates
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_BENCHMARKS_KERNEL_SOURCES_H
#define BOWLINE_COMPILER_CODEGEN_BENCHMARKS_KERNEL_SOURCES_H

namespace bowline::benchmarks {

/// A `func.func @kernel` as fusion creates it from a model. `$T`, `$S` and `$V` stand for tensors of `rows` x 1024,
/// `rows` and 1024 f32 elements, `$R` for `rows`, and `$Q` for rows / 16.
struct KernelSource {
  const char *name;
  const char *text;
};

inline constexpr KernelSource kKernelSources[] = {
    {"add", R"(func.func @kernel(%a: $T, %b: $T) -> $T {
  %r = arith.addf %a, %b : $T
  return %r : $T
})"},
    {"silu_mul", R"(func.func @kernel(%gate: $T, %up: $T) -> $T {
  %s = graph.silu %gate : $T
  %r = arith.mulf %s, %up : $T
  return %r : $T
})"},
    {"silu_mul_backward", R"(func.func @kernel(%grad: $T, %gate: $T, %up: $T) -> ($T, $T) {
  %one = arith.constant dense<1.0> : $T
  %s = graph.logistic %gate : $T
  %silu = arith.mulf %gate, %s : $T
  %toUp = arith.mulf %grad, %silu : $T
  %rest = arith.subf %one, %s : $T
  %scaled = arith.mulf %gate, %rest : $T
  %slope = arith.addf %scaled, %one : $T
  %derivative = arith.mulf %s, %slope : $T
  %through = arith.mulf %grad, %up : $T
  %toGate = arith.mulf %through, %derivative : $T
  return %toGate, %toUp : $T, $T
})"},
    {"gelu_tanh", R"(func.func @kernel(%x: $T, %bias: $V) -> $T {
  %b = graph.broadcast %bias dims [1] : ($V) -> $T
  %y = arith.addf %x, %b : $T
  %r = graph.gelu tanh %y : $T
  return %r : $T
})"},
    {"gelu_erf", R"(func.func @kernel(%x: $T, %bias: $V) -> $T {
  %b = graph.broadcast %bias dims [1] : ($V) -> $T
  %y = arith.addf %x, %b : $T
  %r = graph.gelu erf %y : $T
  return %r : $T
})"},
    {"gelu_tanh_backward", R"(func.func @kernel(%x: $T, %grad: $T) -> $T {
  %half = arith.constant dense<0.5> : $T
  %one = arith.constant dense<1.0> : $T
  %root = arith.constant dense<0.797884583> : $T
  %cubic = arith.constant dense<0.044715> : $T
  %slope = arith.constant dense<0.134145> : $T
  %square = arith.mulf %x, %x : $T
  %scaled = arith.mulf %x, %root : $T
  %part = arith.mulf %square, %cubic : $T
  %inner = arith.addf %part, %one : $T
  %argument = arith.mulf %scaled, %inner : $T
  %t = math.tanh %argument : $T
  %tt = arith.mulf %t, %t : $T
  %sech = arith.subf %one, %tt : $T
  %part2 = arith.mulf %square, %slope : $T
  %inner2 = arith.addf %part2, %one : $T
  %along = arith.mulf %scaled, %inner2 : $T
  %second = arith.mulf %sech, %along : $T
  %first = arith.addf %t, %one : $T
  %sum = arith.addf %first, %second : $T
  %derivative = arith.mulf %sum, %half : $T
  %r = arith.mulf %grad, %derivative : $T
  return %r : $T
})"},
    {"rms_norm", R"(func.func @kernel(%x: $T, %y: $T, %scale: $V) -> ($T, $T) {
  %sum = arith.addf %x, %y : $T
  %r = graph.rms_norm %sum, %scale eps 1.0e-5 : ($T, $V) -> $T
  return %sum, %r : $T, $T
})"},
    {"rms_norm_backward", R"(func.func @kernel(%x: $T, %grad: $T, %scale: $V) -> ($T, $T) {
  %mean = arith.constant dense<0.0009765625> : $S
  %eps = arith.constant dense<1.0e-5> : $S
  %xx = arith.mulf %x, %x : $T
  %sum = graph.reduce sum %xx dims [1] : ($T) -> $S
  %square = arith.mulf %sum, %mean : $S
  %shifted = arith.addf %square, %eps : $S
  %inverse = math.rsqrt %shifted : $S
  %inverses = graph.broadcast %inverse dims [0] : ($S) -> $T
  %normal = arith.mulf %x, %inverses : $T
  %scales = graph.broadcast %scale dims [1] : ($V) -> $T
  %g = arith.mulf %grad, %scales : $T
  %product = arith.mulf %g, %normal : $T
  %dot = graph.reduce sum %product dims [1] : ($T) -> $S
  %average = arith.mulf %dot, %mean : $S
  %averages = graph.broadcast %average dims [0] : ($S) -> $T
  %along = arith.mulf %normal, %averages : $T
  %across = arith.subf %g, %along : $T
  %r = arith.mulf %inverses, %across : $T
  %toScale = arith.mulf %grad, %normal : $T
  return %r, %toScale : $T, $T
})"},
    {"layer_norm", R"(func.func @kernel(%x: $T, %y: $T, %scale: $V, %bias: $V) -> ($T, $T) {
  %sum = arith.addf %x, %y : $T
  %r = graph.layer_norm %sum, %scale, %bias eps 1.0e-5 : ($T, $V, $V) -> $T
  return %sum, %r : $T, $T
})"},
    {"layer_norm_backward", R"(func.func @kernel(%x: $T, %grad: $T, %scale: $V) -> ($T, $T) {
  %mean = arith.constant dense<0.0009765625> : $S
  %eps = arith.constant dense<1.0e-5> : $S
  %sum = graph.reduce sum %x dims [1] : ($T) -> $S
  %average = arith.mulf %sum, %mean : $S
  %averages = graph.broadcast %average dims [0] : ($S) -> $T
  %centred = arith.subf %x, %averages : $T
  %squares = arith.mulf %centred, %centred : $T
  %sum2 = graph.reduce sum %squares dims [1] : ($T) -> $S
  %variance = arith.mulf %sum2, %mean : $S
  %shifted = arith.addf %variance, %eps : $S
  %inverse = math.rsqrt %shifted : $S
  %inverses = graph.broadcast %inverse dims [0] : ($S) -> $T
  %normal = arith.mulf %centred, %inverses : $T
  %scales = graph.broadcast %scale dims [1] : ($V) -> $T
  %g = arith.mulf %grad, %scales : $T
  %product = arith.mulf %g, %normal : $T
  %dot = graph.reduce sum %product dims [1] : ($T) -> $S
  %dotMean = arith.mulf %dot, %mean : $S
  %dots = graph.broadcast %dotMean dims [0] : ($S) -> $T
  %gSum = graph.reduce sum %g dims [1] : ($T) -> $S
  %gMean = arith.mulf %gSum, %mean : $S
  %gMeans = graph.broadcast %gMean dims [0] : ($S) -> $T
  %along = arith.mulf %normal, %dots : $T
  %rest = arith.subf %g, %gMeans : $T
  %across = arith.subf %rest, %along : $T
  %r = arith.mulf %inverses, %across : $T
  %toScale = arith.mulf %grad, %normal : $T
  return %r, %toScale : $T, $T
})"},
    {"rope", R"(func.func @kernel(%x: tensor<1x$Rx16x64xf32>, %c: tensor<$Rx32xf32>, %s: tensor<$Rx32xf32>)
    -> tensor<1x$Rx16x64xf32> {
  %r = graph.rope %x, %c, %s : (tensor<1x$Rx16x64xf32>, tensor<$Rx32xf32>, tensor<$Rx32xf32>)
    -> tensor<1x$Rx16x64xf32>
  return %r : tensor<1x$Rx16x64xf32>
})"},
    {"adamw", R"(func.func @kernel(%grad: $T, %clip: tensor<f32>, %m: $T, %v: $T, %correction: tensor<f32>, %p: $T,
    %decay: tensor<f32>, %lr: tensor<f32>) -> ($T, $T, $T) {
  %clips = graph.broadcast %clip dims [] : (tensor<f32>) -> $T
  %g = arith.mulf %grad, %clips : $T
  %beta1 = arith.constant dense<0.9> : $T
  %old = arith.mulf %m, %beta1 : $T
  %rest1 = arith.constant dense<0.1> : $T
  %new = arith.mulf %g, %rest1 : $T
  %m2 = arith.addf %old, %new : $T
  %beta2 = arith.constant dense<0.95> : $T
  %oldSquare = arith.mulf %v, %beta2 : $T
  %square = arith.mulf %g, %g : $T
  %rest2 = arith.constant dense<0.05> : $T
  %newSquare = arith.mulf %square, %rest2 : $T
  %v2 = arith.addf %oldSquare, %newSquare : $T
  %root = math.sqrt %v2 : $T
  %corrections = graph.broadcast %correction dims [] : (tensor<f32>) -> $T
  %corrected = arith.mulf %root, %corrections : $T
  %eps = arith.constant dense<1.0e-8> : $T
  %denominator = arith.addf %corrected, %eps : $T
  %direction = arith.divf %m2, %denominator : $T
  %decays = graph.broadcast %decay dims [] : (tensor<f32>) -> $T
  %kept = arith.mulf %p, %decays : $T
  %lrs = graph.broadcast %lr dims [] : (tensor<f32>) -> $T
  %step = arith.mulf %direction, %lrs : $T
  %p2 = arith.subf %kept, %step : $T
  return %m2, %v2, %p2 : $T, $T, $T
})"},
    {"sum_of_squares", R"(func.func @kernel(%x: $T) -> $S {
  %square = arith.mulf %x, %x : $T
  %r = graph.reduce sum %square dims [1] : ($T) -> $S
  return %r : $S
})"},
    {"column_sum", R"(func.func @kernel(%x: $T) -> $V {
  %r = graph.reduce sum %x dims [0] : ($T) -> $V
  return %r : $V
})"},
    {"column_sum_blocks", R"(func.func @kernel(%x: $T) -> tensor<16x1024xf32> {
  %b = graph.reshape %x : ($T) -> tensor<16x$Qx1024xf32>
  %r = graph.reduce sum %b dims [1] : (tensor<16x$Qx1024xf32>) -> tensor<16x1024xf32>
  return %r : tensor<16x1024xf32>
})"},
    {"cross_entropy", R"(func.func @kernel(%x: $T, %labels: tensor<$Rxi32>) -> ($S, $S) {
  %loss, %lse = graph.softmax_cross_entropy %x, %labels : ($T, tensor<$Rxi32>) -> ($S, $S)
  return %loss, %lse : $S, $S
})"},
    {"cross_entropy_backward", R"(func.func @kernel(%x: $T, %labels: tensor<$Rxi32>, %lse: $S, %grad: $S) -> $T {
  %r = graph.softmax_cross_entropy_grad %x, %labels, %lse, %grad : ($T, tensor<$Rxi32>, $S, $S) -> $T
  return %r : $T
})"},
    {"transpose", R"(func.func @kernel(%x: $T) -> tensor<1024x$Rxf32> {
  %r = graph.transpose %x perm [1, 0] : ($T) -> tensor<1024x$Rxf32>
  return %r : tensor<1024x$Rxf32>
})"},
    {"transpose_heads", R"(func.func @kernel(%x: tensor<$Rx16x64xf32>) -> tensor<16x$Rx64xf32> {
  %r = graph.transpose %x perm [1, 0, 2] : (tensor<$Rx16x64xf32>) -> tensor<16x$Rx64xf32>
  return %r : tensor<16x$Rx64xf32>
})"},
    {"cast_f32_bf16", R"(func.func @kernel(%x: $T) -> tensor<$Rx1024xbf16> {
  %r = arith.truncf %x : $T to tensor<$Rx1024xbf16>
  return %r : tensor<$Rx1024xbf16>
})"},
    {"cast_bf16_f32", R"(func.func @kernel(%x: tensor<$Rx1024xbf16>) -> $T {
  %r = arith.extf %x : tensor<$Rx1024xbf16> to $T
  return %r : $T
})"},
};

} // namespace bowline::benchmarks

#endif // BOWLINE_COMPILER_CODEGEN_BENCHMARKS_KERNEL_SOURCES_H
