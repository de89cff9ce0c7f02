//===- ChooseTarget.cpp - Choice of the target that a model is compiled for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "absl/strings/str_join.h"
#include "compiler/Driver/CompileSetup.h"
#include "dialects/Plan/PlanOps.h"
#include "types/computed_types.h"

using namespace mlir;
using namespace bowline;

static std::string join(llvm::ArrayRef<std::string_view> words) {
  return llvm::join(llvm::map_range(words, [](std::string_view word) { return std::string(word); }), ", ");
}

/// " --target-cpu x86-64-v3", as the level is asked for.
static std::string flagOf(const targets::Target &target, absl::string_view level) {
  return absl::StrCat(" --", std::string(target.levels.flag), " ", level);
}

/// The targets whose levels a flag chooses, for messages.
static std::string targetsWith(absl::string_view flag) {
  std::vector<std::string> names;
  for (const targets::Target *target : targets::AllTargets())
    if (target->levels.flag == std::string_view(flag.data(), flag.size()))
      names.emplace_back(target->name);
  return absl::StrJoin(names, " or ");
}

absl::StatusOr<ChosenTarget> bowline::chooseTarget(const CompileOptions &options, ModuleOp module) {
  ChosenTarget chosen;
  // A program that earlier phases compiled for one device goes on for the same device.
  auto before = module && options.from != Phase::Input
                    ? module->getAttrOfType<plan::TargetAttr>(plan::PlanDialect::kTargetAttr)
                    : nullptr;
  const std::string device = before ? before.getDevice().str() : std::string(targets::DefaultTarget().name),
                    name = options.target.empty() ? device : options.target;
  BOWLINE_ASSIGN_OR_RETURN(chosen.target, targets::FindTarget(name));
  const targets::Target &target = *chosen.target;
  const targets::Levels &levels = target.levels;
  if (llvm::none_of(target.computed_types, [&](ElementType type) { return NameOf(type) == options.dtype; }))
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype ", options.dtype, " is not supported with --target ", name, "; use one of ",
                     absl::StrJoin(target.computed_types, ", ",
                                   [](std::string *out, ElementType type) { out->append(NameOf(type)); })));
  if (options.mapsWeights && !target.reads_host_memory)
    return absl::InvalidArgumentError(
        absl::StrCat("--map-weights: kernels of the target ", name,
                     " do not read mapped files; leave it out, and the weights are copied to the device"));
  if (options.f32Products != "f32" && !target.splits_f32_products)
    return absl::InvalidArgumentError(absl::StrCat("--f32-products ", options.f32Products, ": the target ", name,
                                                   " has no such products; leave it out"));
  auto asked = options.levels.find(levels.flag);
  for (const auto &[flag, level] : options.levels)
    if (flag != levels.flag)
      return absl::InvalidArgumentError(absl::StrCat("--", flag, " is a flag of --target ", targetsWith(flag),
                                                     " and not of --target ", name,
                                                     "; leave it out, or name its target"));
  std::string wanted = asked == options.levels.end() ? std::string(levels.initial) : asked->second;
  BOWLINE_ASSIGN_OR_RETURN(const std::string level, backendOf(target).resolveLevel(target, wanted));
  chosen.codegen.level = level;
  if (!before)
    return chosen;
  std::string given = before.getCpu().str();
  if (device != name || (asked != options.levels.end() && given != level)) {
    auto compiledFor = targets::FindTarget(device);
    return absl::InvalidArgumentError(absl::StrCat(
        "the program was compiled with --target ", device, compiledFor.ok() ? flagOf(**compiledFor, given) : "",
        " up to here, and cannot go on for --target ", name, flagOf(target, level), "; name the same ones, or none"));
  }
  if (target.has_host_threads && options.threads != 0 && options.threads != before.getThreads())
    return absl::InvalidArgumentError(absl::StrCat("--threads ", options.threads, ": the program was compiled for ",
                                                   before.getThreads(),
                                                   " up to here, and goes on for as many; name "
                                                   "the same number, or leave it out"));
  chosen.threads = before.getThreads();
  if (!llvm::is_contained(levels.names, given))
    return absl::InvalidArgumentError(absl::StrCat(options.model, ": '", plan::PlanDialect::kTargetAttr.str(),
                                                   "' says cpu = \"", given, "\", which no device of the target ", name,
                                                   " is; use one of ", join(levels.names)));
  chosen.codegen.level = given;
  return chosen;
}
