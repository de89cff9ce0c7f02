//===- Registration.h - Dialects and passes of every compiler tool -*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_SUPPORT_REGISTRATION_H
#define BOWLINE_COMPILER_SUPPORT_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace bowline {

/// Registers Bowline's dialects, the upstream ones that they use, and the interfaces attached to upstream operations.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Registers Bowline's passes and the upstream passes that pass writers expect in `bowline-opt`. Call once per process.
void registerAllPasses();

} // namespace bowline

#endif // BOWLINE_COMPILER_SUPPORT_REGISTRATION_H
