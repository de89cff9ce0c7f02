//===- PairsTest.cpp - Small programs that are divided wrongly
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <filesystem>

#include "compiler/Placement/PlacementChecker.h"
#include "compiler/Support/Registration.h"
#include "gtest/gtest.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace bowline;

namespace {

std::vector<std::string> pairs() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(BOWLINE_TEST_DIR "/Unit/Placement/Pairs"))
    names.push_back(file.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

/// Pairs whose second program is a division of the first one; all others compute something else.
bool isRight(StringRef name) { return name.ends_with("-right"); }

class Pairs : public testing::TestWithParam<std::string> {};

TEST_P(Pairs, AreToldApart) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto file = llvm::MemoryBuffer::getFile(BOWLINE_TEST_DIR "/Unit/Placement/Pairs/" + GetParam() + ".mlir");
  ASSERT_TRUE(file);
  auto [first, second] = (*file)->getBuffer().split("// -----\n");
  auto whole = parseSourceString<ModuleOp>(first, &context), divided = parseSourceString<ModuleOp>(second, &context);
  ASSERT_TRUE(whole && divided);
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic& diagnostic) {
    if (error.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error) error = diagnostic.str();
    return success();
  });
  PlacementChecker checker(std::move(whole));
  EXPECT_EQ(succeeded(checker.check(*divided)), isRight(GetParam())) << error;
}

INSTANTIATE_TEST_SUITE_P(, Pairs, testing::ValuesIn(pairs()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
