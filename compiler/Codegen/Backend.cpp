//===- Backend.cpp - Code generator of a target, beside the target's description
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Backend.h"
#include "absl/strings/str_join.h"

using namespace llvm;
using namespace bowline;

namespace bowline::backends {
#define BOWLINE_TARGET(folder) std::unique_ptr<Backend> folder();
#include "targets/targets.inc"
#undef BOWLINE_TARGET
} // namespace bowline::backends

absl::StatusOr<std::string> Backend::resolveLevel(const targets::Target &target, StringRef asked) const {
  if (!llvm::is_contained(target.levels.names, std::string_view(asked)))
    return absl::InvalidArgumentError(absl::StrCat(
        "--", std::string(target.levels.flag), " ", asked.str(), " is unknown; use one of ",
        absl::StrJoin(target.levels.names, ", ", [](std::string *out, std::string_view name) { out->append(name); })));
  return asked.str();
}

const Backend &bowline::backendOf(const targets::Target &target) {
  // One backend per target, in the order of targets::AllTargets().
  static const std::vector<std::unique_ptr<Backend>> backends = [] {
    std::vector<std::unique_ptr<Backend>> all;
#define BOWLINE_TARGET(folder) all.push_back(backends::folder());
#include "targets/targets.inc"
#undef BOWLINE_TARGET
    return all;
  }();
  auto targets = targets::AllTargets();
  return *backends[llvm::find(targets, &target) - targets.begin()];
}

CodegenOptions bowline::defaultCodegen(const targets::Target &target) {
  CodegenOptions options;
  absl::StatusOr<std::string> level = backendOf(target).resolveLevel(target, target.levels.initial);
  options.level = level.ok() ? *level : std::string(target.levels.initial);
  return options;
}
