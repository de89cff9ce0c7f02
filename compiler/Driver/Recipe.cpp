//===- Recipe.cpp - The settings of training that a plan carries
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/Recipe.h"

#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/Builders.h"
#include "runtime/plan/view/attachments.h"

#include <nlohmann/json.hpp>

using namespace mlir;

void bowline::attachRecipe(ModuleOp module, const CompileOptions &options) {
  nlohmann::ordered_json recipe = {{"optimizer", options.optimizer},
                                   {"dtype", options.dtype},
                                   {"lr", options.lr},
                                   {"lr-schedule", options.lrSchedule},
                                   {"warmup-steps", options.warmupSteps},
                                   {"clip-norm", options.clipNorm}};
  if (options.lrSchedule == "cosine") {
    recipe["decay-steps"] = options.decaySteps;
    recipe["min-lr"] = options.minLr;
  }
  if (options.optimizer == "adamw") {
    recipe["beta1"] = options.beta1;
    recipe["beta2"] = options.beta2;
    recipe["eps"] = options.eps;
    recipe["weight-decay"] = options.weightDecay;
  }
  // A program printed before the optimizer was inserted has an old recipe: the flags of this compilation count.
  for (auto attachment : llvm::make_early_inc_range(module.getOps<plan::AttachmentOp>()))
    if (attachment.getName() == kRecipeAttachment)
      attachment.erase();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  plan::AttachmentOp::create(builder, builder.getUnknownLoc(), kRecipeAttachment, recipe.dump());
}
