//===- PassRemarks.cpp - Remarks of passes on their decisions
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/PassRemarks.h"
#include "compiler/Emit/PlanTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace bowline;

namespace {

/// Writes the remarks that match as lines.
class LineStreamer : public remark::detail::MLIRRemarkStreamerBase {
public:
  LineStreamer(llvm::Regex pattern, std::shared_ptr<std::vector<std::string>> lines)
      : pattern(std::move(pattern)), lines(std::move(lines)) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    std::string about =
        absl::StrCat(kindOf(remark), " ", remark.getCombinedCategoryName().str(), "/", remark.getRemarkName().str());
    if (!pattern.match(about))
      return;
    std::string place = describeLocation(remark.getLocation());
    std::string line = absl::StrCat(place, place.empty() ? "" : ": ", textOf(remark), " [", about, "]");
    if (seen.insert(line).second)
      lines->push_back(std::move(line));
  }

private:
  static const char *kindOf(const remark::detail::Remark &remark) {
    switch (remark.getRemarkType()) {
    case llvm::remarks::Type::Passed:
      return "passed";
    case llvm::remarks::Type::Missed:
      return "missed";
    case llvm::remarks::Type::Failure:
      return "failed";
    default:
      return "analysis";
    }
  }

  /// Words as they are, and values with their names.
  static std::string textOf(const remark::detail::Remark &remark) {
    std::string text;
    for (const remark::detail::Remark::Arg &arg : remark.getArgs())
      absl::StrAppend(&text, text.empty() ? "" : ", ", arg.key == "Remark" ? "" : absl::StrCat(arg.key, " "), arg.val);
    return text;
  }

  llvm::Regex pattern;
  llvm::StringSet<> seen;
  std::shared_ptr<std::vector<std::string>> lines;
};

} // namespace

absl::StatusOr<std::unique_ptr<PassRemarks>> PassRemarks::collect(MLIRContext &context, const std::string &pattern) {
  llvm::Regex regex(pattern);
  std::string error;
  if (!regex.isValid(error))
    return absl::InvalidArgumentError(absl::StrCat("--remarks=", pattern, " is no regular expression: ", error));
  std::unique_ptr<PassRemarks> remarks(new PassRemarks(context));
  const std::string any = ".*"; // of a kind without a pattern nothing is reported
  const remark::RemarkCategories all{any, any, any, any, any};
  auto engine = std::make_unique<remark::detail::RemarkEngine>(/*printAsEmitRemarks=*/false, all);
  if (failed(engine->initialize(std::make_unique<LineStreamer>(std::move(regex), remarks->lines),
                                std::make_unique<remark::RemarkEmittingPolicyAll>(), &error)))
    return absl::InternalError(absl::StrCat("cannot collect the remarks of passes: ", error));
  context.setRemarkEngine(std::move(engine));
  return remarks;
}

PassRemarks::~PassRemarks() { context.setRemarkEngine(nullptr); }
