//===- CheckOptions.cpp - Whether options can be compiled with
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/CompileSetup.h"

#include <limits>

using namespace bowline;

/// The most threads of a rank, in the number's type in #plan.target.
static constexpr int64_t kMostThreads = 4096;

/// Steps compute these numbers in f32, in which subnormal numbers are zeros: the refused values divide by zero, or are
/// no finite numbers, in the first steps.
static absl::Status checkOptimizer(const CompileOptions &options) {
  auto invalid = [](auto &&...parts) { return absl::InvalidArgumentError(absl::StrCat(parts...)); };
  for (auto [flag, value] :
       {std::pair{"--lr", options.lr}, std::pair{"--min-lr", options.minLr},
        std::pair{"--weight-decay", options.weightDecay}, std::pair{"--clip-norm", options.clipNorm}})
    if (!(value >= 0 && value <= std::numeric_limits<float>::max()))
      return invalid(flag, " must be from 0 to ", std::numeric_limits<float>::max(), ", the largest f32, got ", value);
  if (options.clipNorm > 0 && options.clipNorm < std::numeric_limits<float>::min())
    return invalid("--clip-norm ", options.clipNorm, " is 0 in f32; use a larger one, or 0 for no clipping");
  if (options.optimizer != "adamw")
    return absl::OkStatus();
  for (auto [flag, beta] : {std::pair{"--beta1", options.beta1}, std::pair{"--beta2", options.beta2}})
    if (!(beta >= 0 && static_cast<float>(beta) < 1))
      return invalid(flag, " must be at least 0 and less than 1 in f32, got ", beta,
                     ": the first steps would divide by zero; use 0.999999 at most");
  if (!(options.eps <= std::numeric_limits<float>::max()))
    return invalid("--eps must be from ", std::numeric_limits<float>::min(), " to ", std::numeric_limits<float>::max(),
                   ", the largest f32, got ", options.eps, "; use 1e-8");
  if (options.eps < std::numeric_limits<float>::min())
    return invalid("--eps must be at least ", std::numeric_limits<float>::min(), ", the least normal f32, got ",
                   options.eps, ": rows of parameters without a gradient would be 0 / 0, which is NaN; use 1e-8");
  return absl::OkStatus();
}

absl::Status bowline::checkOptions(const CompileOptions &options, bool isIr) {
  auto invalid = [](auto &&...parts) { return absl::InvalidArgumentError(absl::StrCat(parts...)); };
  std::optional<ElementType> dtype = ElementTypeFromName(options.dtype);
  if (!dtype || !IsComputedIn(*dtype))
    return invalid("--dtype ", options.dtype, " is not supported; use one of ", NamesOf(&IsComputedIn));
  if (trains(options.mode) && !IsTrainedIn(*dtype))
    return invalid("--dtype ", options.dtype,
                   " is for --mode generate and serve: small gradients would be lost, for no loss is "
                   "scaled to keep them; train with one of ",
                   NamesOf(&IsTrainedIn));
  BOWLINE_RETURN_IF_ERROR(checkServeOptions(options));
  if (!isIr && options.mode != CompileMode::Serve && options.seq < 1)
    return invalid("--seq must be given and at least 1");
  if (!isIr && trains(options.mode) && options.batch < 1)
    return invalid("--batch must be given and at least 1");
  BOWLINE_RETURN_IF_ERROR(checkOptimizer(options));
  if (options.verifiesPlacement && (options.from >= Phase::Shard || options.to < Phase::Local))
    return invalid("--verify=placement compares programs before phase 'shard' and after phase 'local'; compile from an "
                   "earlier phase, and to a later one");
  if (options.mapsWeights && trains(options.mode) && options.from < Phase::Fuse) // then the program says it
    return invalid("--map-weights is for plans that only read weights; add --mode generate or serve, or leave it out");
  if (options.weightsType != "as-stored" && options.weightsType != options.dtype)
    return invalid("--weights-dtype ", options.weightsType,
                   " differs from the type that the plan computes in; add --dtype ", options.weightsType,
                   ", or use as-stored");
  if (options.threads < 0 || options.threads > kMostThreads)
    return invalid("--threads must be 0 to ", kMostThreads, ", got ", options.threads);
  if (options.lrSchedule == "cosine" && options.decaySteps <= options.warmupSteps)
    return invalid("--lr-schedule cosine needs --decay-steps greater than --warmup-steps ", options.warmupSteps,
                   ", got ", options.decaySteps);
  if (options.lrSchedule == "cosine" && options.minLr > options.lr)
    return invalid("--min-lr ", options.minLr, " is above --lr ", options.lr,
                   ", but the cosine schedule goes down to it; exchange them, or give a smaller one");
  return absl::OkStatus();
}
