//===- Gpu/Threads.cpp - This thread, and its cooperation with others of its block
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Gpu/Threads.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

void Threads::begin(int64_t threadsOfBlock, std::string nameOfShared) {
  count = threadsOfBlock;
  sharedName = std::move(nameOfShared);
  Type i32Type = b.getI32Type();
  thread = intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", i32Type);
  block = intrinsic("llvm.nvvm.read.ptx.sreg.ctaid.x", i32Type);
  number = b.toI64(thread);
  lane = b.toI64(arith::AndIOp::create(b, thread, b.i32(kWarp - 1)));
  warp = b.toI64(arith::ShRUIOp::create(b, thread, b.i32(5)));
}

Value Threads::intrinsic(StringRef name, Type type, ValueRange operands) {
  auto call = LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr(name), operands);
  return type ? call->getResult(0) : Value();
}

Value Threads::shuffle(Value value, int64_t distance) {
  Type type = value.getType(), i32Type = b.getI32Type();
  auto exchange = [&](Value word) {
    return intrinsic("llvm.nvvm.shfl.sync.bfly.i32", i32Type, {b.i32(-1), word, b.i32(distance), b.i32(kWarp - 1)});
  };
  unsigned width = type.getIntOrFloatBitWidth();
  Value bits = isa<FloatType>(type) ? arith::BitcastOp::create(b, b.getIntegerType(width), value).getResult() : value;
  Value result;
  if (width == 32) {
    result = exchange(bits);
  } else if (width == 64) {
    Value shift = b.constant(32);
    Value high = b.toI64(exchange(arith::TruncIOp::create(b, i32Type, arith::ShRUIOp::create(b, bits, shift))));
    Value low = b.toI64(exchange(arith::TruncIOp::create(b, i32Type, bits)));
    result = arith::OrIOp::create(b, arith::ShLIOp::create(b, high, shift), low);
  } else {
    result = arith::TruncIOp::create(b, bits.getType(), exchange(arith::ExtUIOp::create(b, i32Type, bits)));
  }
  return isa<FloatType>(type) ? arith::BitcastOp::create(b, type, result).getResult() : result;
}

void Threads::barrier() {
  scopes.insertHere();
  intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", Type(), {b.i32(0)});
}

void Threads::emitRowBarrier() {
  if (rowOfBlock)
    return barrier();
  scopes.insertHere();
  intrinsic("llvm.nvvm.bar.warp.sync", Type(), {b.i32(-1)});
}

Value Threads::sharedAddress(int64_t slot, Value warpNumber) {
  sharedSlots = std::max(sharedSlots, slot + 1);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), 3);
  Value base = LLVM::AddressOfOp::create(b, pointer, sharedName);
  Value index = arith::AddIOp::create(b, warpNumber, b.constant(slot * kWarp));
  return LLVM::GEPOp::create(b, pointer, b.getI64Type(), base, ArrayRef<LLVM::GEPArg>{index});
}

void Threads::defineShared(ModuleOp module) {
  if (sharedSlots == 0)
    return;
  b.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMArrayType::get(b.getI64Type(), sharedSlots * kWarp);
  LLVM::GlobalOp::create(b, type, /*isConstant=*/false, LLVM::Linkage::Internal, sharedName, Attribute(),
                         /*alignment=*/16, /*addrSpace=*/3);
}
