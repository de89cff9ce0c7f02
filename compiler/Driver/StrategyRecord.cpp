//===- StrategyRecord.cpp - The strategy's lines, as phases read them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/StrategyRecord.h"
#include "absl/strings/str_cat.h"
#include "compiler/Driver/FlagUses.h"
#include "dialects/Dist/DistOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace bowline;

namespace {
/// A line of a strategy, or one that was there.
struct Line {
  std::string text; // as a person writes it
  Location location;
};
} // namespace

/// The line as it stands in a strategy. Values that are the default are left out, also where a person wrote them.
static std::string textOf(Operation &line) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  line.print(stream, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
  StringRef words = text;
  words.consume_front("dist.");
  return words.str();
}

/// The lines by their first word, in order: of `shard` the last match counts.
static llvm::MapVector<StringRef, SmallVector<Line>> linesOf(dist::StrategyOp strategy) {
  llvm::MapVector<StringRef, SmallVector<Line>> lines;
  if (strategy)
    for (Operation &line : strategy.getBody().front())
      lines[line.getName().stripDialect()].push_back({textOf(line), line.getLoc()});
  return lines;
}

void bowline::recordStrategy(ModuleOp module) {
  SmallVector<std::string> texts;
  if (dist::StrategyOp strategy = dist::StrategyOp::of(module))
    for (Operation &line : strategy.getBody().front())
      texts.push_back(textOf(line));
  SmallVector<StringRef> words(texts.begin(), texts.end());
  module->setAttr(kStrategyRecordAttr, Builder(module.getContext()).getStrArrayAttr(words));
}

/// Refuses differences between the lines of one kind, whose last phase, \p last, is over. The place of a line may be
/// where it was first written, so that the program that has it is named too.
static void refuseChange(ArrayRef<Line> before, ArrayRef<Line> now, Phase last, Location strategy,
                         const std::string &program) {
  size_t same = 0;
  while (same < std::min(before.size(), now.size()) && before[same].text == now[same].text)
    ++same;
  InFlightDiagnostic diagnostic = emitError(same < now.size() ? now[same].location : strategy);
  std::string phase = absl::StrCat("phase '", nameOf(last).str(), "', the last one that reads it");
  if (same == now.size())
    diagnostic << "the strategy of " << program << " has no line '" << before[same].text
               << "' any more, which it had in " << phase << "; write it again";
  else if (same == before.size())
    diagnostic << "the line '" << now[same].text << "' of " << program << " was not there in " << phase
               << "; remove it";
  else
    diagnostic << "the line '" << now[same].text << "' of " << program << " was '" << before[same].text << "' in "
               << phase << "; change it back";
  diagnostic << ", or change the strategy of a program that --compile-to=" << nameOf(phaseBefore(last))
             << " or an earlier phase printed, and compile that";
}

absl::Status bowline::checkStrategyRecord(ModuleOp module, const CompileOptions &options,
                                          DiagnosticCollector &diagnostics) {
  Attribute attribute = module->getAttr(kStrategyRecordAttr);
  if (!attribute)
    return absl::OkStatus();
  auto record = dyn_cast<ArrayAttr>(attribute);
  if (!record || !llvm::all_of(record, llvm::IsaPred<StringAttr>))
    return absl::InvalidArgumentError(absl::StrCat(options.model, ": '", kStrategyRecordAttr.str(),
                                                   "' is no list of the lines of a strategy; leave the attribute out, "
                                                   "or print the program again with --compile-to"));
  dist::StrategyOp strategy = dist::StrategyOp::of(module);
  Location location = strategy ? strategy.getLoc() : module.getLoc();
  llvm::MapVector<StringRef, SmallVector<Line>> now = linesOf(strategy), before;
  for (StringRef text : record.getAsValueRange<StringAttr>())
    before[text.take_until(llvm::isSpace)].push_back({text.str(), location});
  SetVector<StringRef> names;
  for (const auto *lines : {&now, &before})
    for (const auto &[name, texts] : *lines)
      names.insert(name);
  for (StringRef name : names) {
    std::optional<Phase> last = lastReadOfLine(name);
    if (!last || options.from < *last ||
        llvm::equal(now[name], before[name], [](const Line &lhs, const Line &rhs) { return lhs.text == rhs.text; }))
      continue;
    refuseChange(before[name], now[name], *last, location, options.model);
    return diagnostics.status();
  }
  return absl::OkStatus();
}
