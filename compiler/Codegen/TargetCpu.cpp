//===- TargetCpu.cpp - Processors that code is generated for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/TargetCpu.h"
#include "runtime/plan/x86_levels.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;
using namespace bowline;
using namespace bowline::codegen;

static StringRef nativeName(const StringMap<bool> &host) {
  auto hasAll = [&](ArrayRef<StringRef> names) {
    return all_of(names, [&](StringRef name) { return host.lookup(name); });
  };
  size_t level = X86LevelOf([&](const char *name) { return host.lookup(name); });
  if (level < 3)
    return level < 2 ? "x86-64-v2" : "x86-64-v3"; // less is no target
  if (!host.lookup("avx512bf16"))
    return "x86-64-v4";
  return hasAll({"amx-tile", "amx-bf16"}) ? "x86-64-v4+avx512bf16+amx" : "x86-64-v4+avx512bf16";
}

std::optional<TargetCpu> bowline::codegen::targetCpu(StringRef name, const StringMap<bool> &host) {
  static const TargetCpu known[] = {
      {"x86-64-v2", "x86-64-v2", 128, false},
      {"x86-64-v3", "x86-64-v3", 256, false},
      {"x86-64-v4", "x86-64-v4", 512, false},
      {"x86-64-v4+avx512bf16", "x86-64-v4", 512, true},
      {"x86-64-v4+avx512bf16+amx", "x86-64-v4", 512, true},
  };
  if (name == "native")
    name = nativeName(host);
  const TargetCpu *found = find_if(known, [&](const TargetCpu &cpu) { return cpu.name == name; });
  return found == std::end(known) ? std::nullopt : std::optional(*found);
}

std::optional<TargetCpu> bowline::codegen::targetCpu(StringRef name) {
  return targetCpu(name, sys::getHostCPUFeatures());
}
