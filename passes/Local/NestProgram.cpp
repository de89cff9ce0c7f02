//===- NestProgram.cpp - A program without stages is one role
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/Roles.h"
#include "passes/Local/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_NESTPROGRAM
#include "passes/Local/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class NestProgram : public bowline::impl::NestProgramBase<NestProgram> {
public:
  using NestProgramBase::NestProgramBase;

  void runOnProgram() override {
    if (!nestProgram(getOperation()))
      markAllAnalysesPreserved();
  }

private:
  /// The ranks of a pipeline have modules of their own already, which stay.
  bool takesRoles() const override { return true; }
};

} // namespace
