//===- ProgramEnums.h - Kinds and flags of programs in every dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_H
#define BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Program/ProgramEnums.h.inc"

namespace bowline {

/// Parses and prints flags in the syntax of operations, separated by bars as in "saved|step"; an empty text means no
/// flags.
mlir::ParseResult parseStateFlags(mlir::OpAsmParser &parser, StateFlagsAttr &flags);
void printStateFlags(mlir::OpAsmPrinter &printer, mlir::Operation *op, StateFlagsAttr flags);

/// `variable` must be persistent. Emits an error at it if its flags contradict each other.
llvm::LogicalResult verifyFlags(mlir::Operation *variable, StateFlags flags);

/// Parses and prints an entry's kind in the syntax of operations, before the symbol; the kind `custom` may be left out.
mlir::OptionalParseResult parseEntryKind(mlir::OpAsmParser &parser, EntryKindAttr &kind);
void printEntryKind(mlir::OpAsmPrinter &printer, mlir::Operation *op, EntryKindAttr kind);

/// Returns whether there may be several entries of the kind, one for each bucket.
inline bool hasBuckets(EntryKind kind) { return kind == EntryKind::Step || kind == EntryKind::Embed; }

/// Emits an error at `entry` if its kind needs a bucket and `bucket` is 0 (none), or the other way round.
llvm::LogicalResult verifyBucket(mlir::Operation *entry, EntryKind kind, int64_t bucket);

/// Emits an error at `entry` if an earlier entry in its block has the same kind and bucket. A search by kind and bucket
/// therefore finds at most one entry.
template <typename EntryOp> llvm::LogicalResult verifyOnlyOfItsKind(EntryOp entry) {
  if (entry.getKind() == EntryKind::Custom)
    return mlir::success();
  for (auto other : entry->getBlock()->template getOps<EntryOp>()) {
    if (other == entry)
      return mlir::success();
    if (other.getKind() == entry.getKind() && other.getBucket() == entry.getBucket())
      return entry.emitOpError("is of kind ")
             << stringifyEntryKind(entry.getKind()) << ", as entry @" << other.getSymName()
             << " is; there may be one entry of a kind" << (hasBuckets(entry.getKind()) ? " and bucket" : "");
  }
  return mlir::success();
}

} // namespace bowline

#endif // BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_H
