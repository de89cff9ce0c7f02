//===- TargetCpu.cpp - Processors that code is generated for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/TargetCpu.h"
#include "absl/strings/str_cat.h"
#include "kernels/registry/cpu_level.h"

using namespace llvm;
using namespace bowline;
using namespace bowline::codegen;

static TargetCpu targetOf(CpuLevel level) {
  std::string name(NameOf(level)), psabi = name.substr(0, name.find('+'));
  int vectorBits = level == CpuLevel::kV2 ? 128 : level == CpuLevel::kV3 ? 256 : 512;
  return {name, psabi, vectorBits, level >= CpuLevel::kV4Bf16};
}

absl::StatusOr<TargetCpu> bowline::codegen::targetCpu(StringRef name) {
  // A wrong limit on the native level is an error also where `name` alone decides: the user set it by mistake.
  absl::StatusOr<CpuLevel> native = NativeCpuLevel();
  if (!native.ok())
    return native.status();
  if (name == "native")
    return targetOf(*native);
  if (std::optional<CpuLevel> level = CpuLevelNamed(name))
    return targetOf(*level);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown target '", name.str(), "'; use native or one of ", CpuLevelList()));
}
