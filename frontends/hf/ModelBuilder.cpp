//===- ModelBuilder.cpp - Shared by the families' graphs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/ModelBuilder.h"

#include "dialects/Graph/GraphOps.h"
#include "frontends/hf/Parameters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using namespace bowline::hf;

ModelBuilder::ModelBuilder(MLIRContext &context, const ModelConfig &config)
    : config(config), builder(UnknownLoc::get(&context), &context) {}

void ModelBuilder::at(const Twine &modulePath) { builder.setLoc(NameLoc::get(builder.getStringAttr(modulePath))); }

RankedTensorType ModelBuilder::f32(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder.getF32Type());
}

RankedTensorType ModelBuilder::i32(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder.getI32Type());
}

static Attribute initAttr(MLIRContext *context, const Initial &initial) {
  if (initial.kind == Initial::Kind::Normal)
    return graph::NormalAttr::get(context, initial.value);
  return graph::FillAttr::get(context, initial.value);
}

static graph::RoleAttr roleAttr(MLIRContext *context, const Role &role) {
  auto kind = [&] {
    switch (role.kind) {
    case Role::Kind::None:
      return graph::RoleKind::None;
    case Role::Kind::Column:
      return graph::RoleKind::Column;
    case Role::Kind::Row:
      return graph::RoleKind::Row;
    case Role::Kind::Keys:
      return graph::RoleKind::Keys;
    case Role::Kind::Fused:
      return graph::RoleKind::Fused;
    case Role::Kind::Vocabulary:
      return graph::RoleKind::Vocabulary;
    }
    llvm_unreachable("unknown role");
  };
  return graph::RoleAttr::get(context, kind(), role.parts, role.sharedBy);
}

/// A matrix in blocks of bits: bytes [rows, blocks of a row, bytes of a block]. Null where rows are no whole blocks.
static RankedTensorType blockType(MLIRContext *context, const Parameter &parameter, ElementType format) {
  if (parameter.shape.size() != 2)
    return nullptr;
  const ElementTypeInfo &info = InfoOf(format);
  int64_t rows = parameter.shape[0], width = parameter.shape[1];
  if (parameter.isTransposed)
    std::swap(rows, width);
  if (width % info.block_elements != 0)
    return nullptr;
  int64_t shape[] = {rows, width / info.block_elements, info.block_bytes};
  return RankedTensorType::get(shape, IntegerType::get(context, 8, IntegerType::Unsigned));
}

void ModelBuilder::declareParameters(const std::map<std::string, ElementType> &blocks) {
  for (const Parameter &parameter : parameters(config)) {
    at(parameter.key);
    RankedTensorType type = f32(parameter.shape);
    auto stored = blocks.find(parameter.key);
    RankedTensorType bytes =
        stored != blocks.end() ? blockType(builder.getContext(), parameter, stored->second) : nullptr;
    if (bytes) {
      type = bytes;
      formats[parameter.symbol] = std::string(InfoOf(stored->second).name);
    }
    parameterTypes[parameter.symbol] = type;
    MLIRContext *context = builder.getContext();
    auto param =
        graph::ParamOp::create(builder, parameter.symbol, type, initAttr(context, parameter.initial), parameter.key);
    param.setRoleAttr(roleAttr(context, parameter.role));
    if (bytes) {
      param.setInitAttr(graph::FillAttr::get(context, 0.0));
      param.setFormat(formats[parameter.symbol]);
      param.setFrozen(true);
    }
    param.setLayer(parameter.layer);
  }
}

Value ModelBuilder::positions(int64_t length) {
  return cache ? cache->positions() : Value(graph::IotaOp::create(builder, i32({length}), 0));
}

Value ModelBuilder::read(const Twine &symbol) {
  std::string name = symbol.str();
  return graph::ReadOp::create(builder, parameterTypes.at(name), name);
}

Value ModelBuilder::contract(Value x, Value weight, int64_t weightDim) {
  return graph::DotGeneralOp::create(builder, x, weight, ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
                                     ArrayRef<int64_t>{typeOf(x).getRank() - 1}, ArrayRef<int64_t>{weightDim});
}

Value ModelBuilder::rows(const Twine &symbol, Value numbers) {
  Value table = read(symbol);
  auto format = formats.find(symbol.str());
  if (format == formats.end())
    return graph::GatherOp::create(builder, table, numbers);
  SmallVector<int64_t> shape(typeOf(numbers).getShape());
  shape.push_back(config.hidden);
  return graph::QuantizedGatherOp::create(builder, f32(shape), table, numbers, format->second);
}

Value ModelBuilder::multiplyBlocks(Value x, Value weight) {
  auto read = weight.getDefiningOp<graph::ReadOp>();
  auto format = read ? formats.find(read.getVariable()) : formats.end();
  if (format == formats.end())
    return nullptr;
  return graph::QuantizedDotOp::create(builder, x, weight, format->second).getResult();
}

Value ModelBuilder::linear(Value x, Value weight) {
  Value product = multiplyBlocks(x, weight);
  return product ? product : contract(x, weight, 1);
}

Value ModelBuilder::linearTransposed(Value x, Value weight) {
  Value product = multiplyBlocks(x, weight);
  return product ? product : contract(x, weight, 0);
}

Value ModelBuilder::add(Value lhs, Value rhs) { return arith::AddFOp::create(builder, lhs, rhs); }

Value ModelBuilder::multiply(Value lhs, Value rhs) { return arith::MulFOp::create(builder, lhs, rhs); }

Value ModelBuilder::addBias(Value x, Value bias) {
  RankedTensorType type = typeOf(x);
  return add(x, graph::BroadcastOp::create(builder, type, bias, ArrayRef<int64_t>{type.getRank() - 1}));
}

Value ModelBuilder::reshape(Value x, ArrayRef<int64_t> shape) {
  return graph::ReshapeOp::create(builder, typeOf(x).clone(shape), x);
}

Value ModelBuilder::columns(Value x, int64_t begin, int64_t size) {
  SmallVector<int64_t> offsets(typeOf(x).getRank(), 0), sizes(typeOf(x).getShape());
  offsets.back() = begin;
  sizes.back() = size;
  return graph::SliceOp::create(builder, x, offsets, sizes);
}

Value ModelBuilder::splitHeads(Value x, int64_t heads) {
  ArrayRef<int64_t> shape = typeOf(x).getShape();
  return reshape(x, {shape[0], shape[1], heads, config.headDim});
}

Value ModelBuilder::mergeHeads(Value x) {
  ArrayRef<int64_t> shape = typeOf(x).getShape();
  return reshape(x, {shape[0], shape[1], shape[2] * shape[3]});
}

Value ModelBuilder::causalAttention(Value query, Value key, Value value, int64_t window) {
  APFloat scale(1 / std::sqrt(static_cast<double>(config.headDim)));
  if (cache)
    return cache->attend(builder, query, key, value, scale, window);
  return graph::AttentionOp::create(builder, query, key, value, scale, /*causal=*/true, window).getResult();
}
