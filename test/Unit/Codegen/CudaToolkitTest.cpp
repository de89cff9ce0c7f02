//===- CudaToolkitTest.cpp - Toolkits that do not work
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Gpu/CudaToolkit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace bowline::codegen;
namespace fs = std::filesystem;

/// A toolkit whose ptxas is this script.
static std::string makeToolkit(const std::string &script) {
  fs::path folder = fs::path(testing::TempDir()) / "toolkit", ptxas = folder / "bin/ptxas";
  fs::create_directories(ptxas.parent_path());
  std::ofstream(ptxas) << "#!/bin/sh\n" << script << "\n";
  fs::permissions(ptxas, fs::perms::owner_all);
  return folder;
}

TEST(CudaToolkit, APtxasThatHangsIsEnded) {
  auto image = assemblePtx(makeToolkit("exec sleep 100000"), "sm_80", "", nullptr, /*seconds=*/1);
  ASSERT_FALSE(static_cast<bool>(image));
  EXPECT_THAT(llvm::toString(image.takeError()),
              testing::AllOf(testing::HasSubstr("bin/ptxas could not assemble the generated kernels"),
                             testing::HasSubstr("timed out")));
}
