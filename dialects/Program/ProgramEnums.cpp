//===- ProgramEnums.cpp - Kinds and flags of programs in every dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Program/ProgramEnums.h"

#include "llvm/ADT/bit.h"

#include <limits>

using namespace mlir;
using namespace bowline;

#include "dialects/Program/ProgramEnums.cpp.inc"

ParseResult bowline::parseStateFlags(OpAsmParser &parser, StateFlagsAttr &flags) {
  StateFlags all = StateFlags::None;
  StringRef name;
  while (succeeded(parser.parseOptionalKeyword(&name))) {
    std::optional<StateFlags> flag = symbolizeStateFlags(name);
    if (!flag || *flag == StateFlags::None)
      return parser.emitError(parser.getNameLoc()) << "does not know the flag '" << name << "' of a state; flags are "
                                                   << stringifyStateFlags(~StateFlags::None);
    all |= *flag;
    if (failed(parser.parseOptionalVerticalBar()))
      break;
  }
  flags = StateFlagsAttr::get(parser.getContext(), all);
  return success();
}

void bowline::printStateFlags(OpAsmPrinter &printer, Operation *, StateFlagsAttr flags) {
  if (flags.getValue() != StateFlags::None)
    printer << stringifyStateFlags(flags.getValue());
}

/// A persistent tensor has one of these: the flag says how a resumed run gets the value.
static constexpr StateFlags kOrigins =
    StateFlags::Saved | StateFlags::Mirror | StateFlags::PerRequest | StateFlags::Cache;

LogicalResult bowline::verifyFlags(Operation *variable, StateFlags flags) {
  auto fail = [&] { return variable->emitOpError("is ") << stringifyStateFlags(flags) << ", but "; };
  auto has = [&](StateFlags flag) { return bitEnumContainsAny(flags, flag); };
  if (llvm::popcount(static_cast<uint32_t>(flags & kOrigins)) != 1)
    return fail() << "must be one of " << stringifyStateFlags(kOrigins)
                  << ": the flag says how a resumed run gets the value";
  if (has(StateFlags::Trained) && !has(StateFlags::Weight))
    return fail() << "only a weight is trained";
  if (has(StateFlags::Step) && (has(StateFlags::Weight) || !has(StateFlags::Saved)))
    return fail() << "only a saved variable that is no weight counts steps";
  if (has(StateFlags::PerRequest | StateFlags::Cache) && has(StateFlags::Weight))
    return fail() << "a weight serves all requests, and no request writes it";
  return success();
}

OptionalParseResult bowline::parseEntryKind(OpAsmParser &parser, EntryKindAttr &kind) {
  StringRef name;
  SMLoc place = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&name)))
    return std::nullopt;
  std::optional<EntryKind> known = symbolizeEntryKind(name);
  if (!known) {
    InFlightDiagnostic diagnostic = parser.emitError(place)
                                    << "does not know the kind '" << name << "' of an entry; kinds are ";
    llvm::interleaveComma(llvm::seq<uint32_t>(0, getMaxEnumValForEntryKind() + 1), diagnostic,
                          [&](uint32_t value) { diagnostic << stringifyEntryKind(static_cast<EntryKind>(value)); });
    return ParseResult(diagnostic);
  }
  kind = EntryKindAttr::get(parser.getContext(), *known);
  return ParseResult(success());
}

void bowline::printEntryKind(OpAsmPrinter &printer, Operation *, EntryKindAttr kind) {
  printer << stringifyEntryKind(kind.getValue());
}

LogicalResult bowline::verifyBucket(Operation *entry, EntryKind kind, int64_t bucket) {
  if (hasBuckets(kind) && bucket < 1)
    return entry->emitOpError("is of kind ")
           << stringifyEntryKind(kind) << ", which computes a number of tokens; say which: 'bucket 1' or more";
  if (bucket > std::numeric_limits<int32_t>::max())
    return entry->emitOpError("has bucket ") << bucket << ", but plans count tokens in 32 bits";
  if (!hasBuckets(kind) && bucket != 0)
    return entry->emitOpError("has bucket ")
           << bucket << ", which entries of kind " << stringifyEntryKind(kind) << " do not have; leave it out";
  return success();
}
