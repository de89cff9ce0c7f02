//===- WeightPacking.cpp - Weights in the order in which matrix products read them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Hoisting/WeightPacking.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Program/ElementTypes.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/KernelSignature.h"
#include "passes/Analysis/Lifetimes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline;

static constexpr llvm::StringLiteral kPassName = "PackWeights";

// By name: packing is about this pair of kernels. Their signatures (kernels/signatures) say which fields of the
// product's configuration give the layout of its second operand, and which ones let it read the other kernel's result;
// only the form itself is the target's (targets::Packing). Operations do not answer for it, as no operation has packed
// operands.
static constexpr llvm::StringLiteral kProduct = "matmul", kPack = "pack_matrix";
static constexpr unsigned kWeight = 1; // the argument of kProduct

static int64_t integer(DictionaryAttr config, StringRef name) { return config.getAs<IntegerAttr>(name).getInt(); }

bool WeightPacking::isPossible(ModuleOp module, const ModuleTarget &target) {
  return target->packing && dist::recomputeOf(module) != "full";
}

WeightPacking::WeightPacking(ModuleOp module, ModuleTarget target, PackingThresholds least)
    : module(module), symbols(module), target(std::move(target)), prepare(module, symbols) {
  for (auto program : module.getOps<plan::ProgramOp>())
    if (prepare.isOther(program))
      for (auto segment : program.getBody().front().getOps<plan::SegmentOp>())
        collect(segment);
  for (auto &[key, weight] : fixedWeights)
    found.push_back(std::move(weight));
  fixedWeights.clear();
  dropThoseBelow(least);
  // Time saved per byte: a row of the product takes time in proportion to the weight's elements.
  llvm::stable_sort(found, [](const PackableWeight &a, const PackableWeight &b) { return a.savedRows > b.savedRows; });
}

void WeightPacking::dropThoseBelow(PackingThresholds least) {
  llvm::erase_if(found, [&](const PackableWeight &weight) {
    if (weight.savedRows >= (weight.isFixed ? least.persistent : least.inStep) * weight.productRows)
      return false;
    PlainWeights &plain = weight.isFixed ? plainFixed : plainInStep;
    ++plain.count;
    plain.bytes += plan::byteCount(weight.packedType);
    return true;
  });
}

//===----------------------------------------------------------------------===//
// Weights to pack
//===----------------------------------------------------------------------===//

targets::Packing::Rows WeightPacking::costOf(DictionaryAttr layout) const {
  bool isContiguous = layout.getAs<DenseI64ArrayAttr>("b_strides")[2] == 1;
  return isContiguous ? target->packing->contiguous_in_n : target->packing->other;
}

RankedTensorType WeightPacking::packedType(int64_t k, int64_t n, Type element) const {
  std::optional<ElementType> type = elementTypeOf(element);
  std::optional<int64_t> elements =
      type ? target->packing->elements(k, n, *type, target.level) : std::optional<int64_t>();
  return elements ? RankedTensorType::get({*elements}, element) : RankedTensorType();
}

std::optional<DictionaryAttr> WeightPacking::layoutOf(plan::LaunchOp launch, plan::KernelOp kernel) {
  if (kernel.getRegistered() != kProduct || !kernel.getConfigAttr())
    return std::nullopt;
  if (launch.getOperands()[kWeight].getDefiningOp<plan::BufferOp>().getSpace() == plan::MemorySpace::External)
    return std::nullopt;
  DictionaryAttr config = kernel.getConfigAttr();
  auto bStrides = config.getAs<DenseI64ArrayAttr>("b_strides"), cStrides = config.getAs<DenseI64ArrayAttr>("c_strides");
  // Emission refuses a kernel that lacks some of these.
  if (!llvm::all_of(ArrayRef<StringRef>{"batch", "m", "n", "k"},
                    [&](StringRef name) { return config.getAs<IntegerAttr>(name) != nullptr; }) ||
      (!kernel.hasEpilogue() && (!cStrides || cStrides.size() != 3)) || (bStrides && bStrides.size() != 3))
    return std::nullopt;
  if (!bStrides || integer(config, "batch") != 1 || integer(config, "n") < 2 ||
      (!kernel.hasEpilogue() && cStrides[2] != 1))
    return std::nullopt;
  int64_t rows = integer(config, "m");
  if (rows < 2 || (rows <= target->packing->rows_in_place && bStrides[2] == 1)) {
    if (prepare.isFixed(launch.getOperands()[kWeight]))
      inPlace.insert(launch.getOperands()[kWeight]);
    return std::nullopt;
  }
  if (!packedType(integer(config, "k"), integer(config, "n"), kernel.getArgument(kWeight).getType().getElementType()))
    return std::nullopt;
  Builder builder(module.getContext());
  return builder.getDictionaryAttr({builder.getNamedAttr("k", config.get("k")),
                                    builder.getNamedAttr("n", config.get("n")),
                                    builder.getNamedAttr("b_strides", bStrides)});
}

void WeightPacking::collect(plan::SegmentOp segment) {
  SegmentInvariants invariants(segment, symbols);
  WeightMap weights;
  for (auto launch : segment.getBody().front().getOps<plan::LaunchOp>()) {
    auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
    if (std::optional<DictionaryAttr> layout = layoutOf(launch, kernel)) {
      if (launch->hasAttr(kUnpackedAttr)) {
        declinedWeights.insert(launch.getOperands()[kWeight]);
        continue;
      }
      if (prepare.isFixed(launch.getOperands()[kWeight]))
        add(launch, *layout, std::max<int64_t>(invariants.runs(), 1), fixedWeights);
      else if (invariants.runs() > 0 && invariants.isInvariant(launch.getOperands()[kWeight]))
        add(launch, *layout, invariants.runs(), weights);
    }
  }
  for (auto &[key, weight] : weights)
    found.push_back(std::move(weight));
}

void WeightPacking::add(plan::LaunchOp launch, DictionaryAttr layout, int64_t runs, WeightMap &weights) {
  auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
  Value source = launch.getOperands()[kWeight];
  PackableWeight &weight = weights[{source, layout}];
  if (weight.launches.empty()) {
    weight.segment = launch->getParentOfType<plan::SegmentOp>();
    weight.isFixed = prepare.isFixed(source);
    weight.source = source;
    weight.layout = layout;
    weight.packedType = packedType(integer(layout, "k"), integer(layout, "n"),
                                   cast<plan::BufferType>(source.getType()).getTensor().getElementType());
    weight.savedRows = weight.isFixed ? 0 : -costOf(layout).pack;
  }
  weight.launches.push_back(launch);
  int64_t rows = integer(kernel.getConfigAttr(), "m");
  bool isStored = !kernel.hasEpilogue() && kernel.getArgument(2).getType().getElementType().isF32();
  int64_t packings =
      isStored || target.threads > 1 ? 1 : static_cast<int64_t>(llvm::divideCeil(rows, target->packing->span_rows));
  double saved = static_cast<double>(runs * packings) * costOf(layout).saved;
  weight.calls += runs;
  weight.savedRows += saved;
  weight.productRows += static_cast<double>(runs * rows) + saved;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

void WeightPacking::run() {
  for (PackableWeight &weight : found)
    pack(weight);
  if (llvm::any_of(found, [](const PackableWeight &weight) { return weight.isFixed; }))
    prepare.keepResults();
  eraseUnused();
}

void WeightPacking::pack(PackableWeight &weight) {
  plan::KernelOp kernel = packKernel(weight);
  if (!kernel)
    return;
  for (plan::LaunchOp launch : weight.launches)
    if (!packedProduct(symbols.lookup<plan::KernelOp>(launch.getKernel()), weight.packedType))
      return;

  OpBuilder builder(weight.segment->getParentOp());
  StringRef name = weight.source.getDefiningOp<plan::BufferOp>().getName();
  Value packed = plan::BufferOp::create(builder, weight.source.getLoc(), plan::BufferType::get(weight.packedType),
                                        (name + ".packed").str(), plan::BufferKind::Temporary, /*offset=*/nullptr,
                                        /*slots=*/1, /*stride=*/0, /*layout=*/nullptr);
  if (weight.isFixed)
    prepare.addResult(packed);
  builder = placeOf(weight);
  plan::LaunchOp::create(builder, weight.launches.front().getLoc(), kernel.getName(), ValueRange{weight.source, packed},
                         kPassName);
  for (plan::LaunchOp launch : weight.launches)
    usePacked(launch, packed);
}

/// Right behind the command that computes the weight, so that its memory is free again soon.
OpBuilder WeightPacking::placeOf(PackableWeight &weight) {
  Block &block = (weight.isFixed ? prepare.segment() : segmentBefore(weight.segment)).getBody().front();
  for (Operation &command : llvm::reverse(block))
    if (llvm::any_of(usesOf(&command, symbols),
                     [&](const CommandUse &use) { return use.writes && use.buffer == weight.source; }))
      return OpBuilder(command.getBlock(), std::next(Block::iterator(command)));
  return OpBuilder::atBlockEnd(&block);
}

/// Lets a product take `packed` and scratch of its new size.
void WeightPacking::usePacked(plan::LaunchOp launch, Value packed) {
  auto plain = symbols.lookup<plan::KernelOp>(launch.getKernel());
  plan::KernelOp kernel = products.lookup(plain);
  SmallVector<Value> operands(launch.getOperands());
  operands[kWeight] = packed;
  Value oldScratch = plain.hasScratch() ? operands.pop_back_val() : Value();
  if (kernel.hasScratch()) {
    OpBuilder builder(oldScratch.getDefiningOp());
    auto old = oldScratch.getDefiningOp<plan::BufferOp>();
    operands.push_back(plan::BufferOp::create(
        builder, old.getLoc(), plan::BufferType::get(kernel.getArgument(operands.size()).getType()), old.getName(),
        plan::BufferKind::Scratch, /*offset=*/nullptr, /*slots=*/1, /*stride=*/0, /*layout=*/nullptr));
  }
  launch.setKernel(kernel.getName());
  launch->setOperands(operands);
  if (oldScratch && oldScratch.use_empty())
    oldScratch.getDefiningOp()->erase();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Bytes of scratch of a kernel of the registry; none if it refuses the signature.
std::optional<size_t> WeightPacking::scratchBytes(StringRef name, DictionaryAttr config,
                                                  ArrayRef<plan::ArgumentAttr> arguments, bool hasEpilogue) {
  auto needs = target.needsOf(kernelSignature(name, config, arguments, target.threads, hasEpilogue));
  return needs.ok() ? std::optional(needs->scratch_bytes) : std::nullopt;
}

static plan::KernelOp cloneBehind(plan::KernelOp kernel, SymbolTable &symbols, const Twine &name) {
  auto clone = cast<plan::KernelOp>(kernel->clone());
  clone.setName(name.str());
  symbols.insert(clone, std::next(Block::iterator(kernel)));
  return clone;
}

plan::KernelOp WeightPacking::packKernel(const PackableWeight &weight) {
  Builder b(module.getContext());
  auto source = cast<plan::BufferType>(weight.source.getType()).getTensor();
  plan::KernelOp &known = packKernels[b.getArrayAttr({weight.layout, TypeAttr::get(source)})];
  if (known)
    return known;
  SmallVector<plan::ArgumentAttr> arguments = {
      plan::ArgumentAttr::get(b.getContext(), plan::Access::Read, source),
      plan::ArgumentAttr::get(b.getContext(), plan::Access::Write, weight.packedType)};
  if (scratchBytes(kPack, weight.layout, arguments, /*hasEpilogue=*/false) != std::optional<size_t>(0))
    return nullptr;
  OpBuilder builder(weight.segment->getParentOp());
  OperationState state(builder.getUnknownLoc(), plan::KernelOp::getOperationName());
  state.addAttribute("sym_name", builder.getStringAttr(kPack));
  known = cast<plan::KernelOp>(builder.create(state));
  known->remove();
  symbols.insert(known, Block::iterator(weight.segment->getParentOp()));
  known.setRegistered(kPack);
  known.setConfigAttr(weight.layout);
  known.setArgumentsAttr(b.getArrayAttr(SmallVector<Attribute>(arguments.begin(), arguments.end())));
  known.setFlops(APFloat(0.0));
  known.setBytesMoved(APFloat(static_cast<double>(plan::byteCount(source) + plan::byteCount(weight.packedType))));
  return known;
}

plan::KernelOp WeightPacking::packedProduct(plan::KernelOp kernel, RankedTensorType packedType) {
  plan::KernelOp &known = products[kernel];
  if (known)
    return known;
  Builder b(module.getContext());
  NamedAttrList config(kernel.getConfigAttr());
  config.erase("b_strides");
  config.set("b_packed", b.getI64IntegerAttr(1));
  DictionaryAttr packedConfig = config.getDictionary(b.getContext());
  SmallVector<plan::ArgumentAttr> arguments;
  for (unsigned i = 0; i < kernel.getNumArguments() - (kernel.hasScratch() ? 1 : 0); ++i)
    arguments.push_back(kernel.getArgument(i));
  auto plainBytes = static_cast<double>(plan::byteCount(arguments[kWeight].getType()));
  arguments[kWeight] = plan::ArgumentAttr::get(b.getContext(), plan::Access::Read, packedType);
  std::optional<size_t> scratch = scratchBytes(kProduct, packedConfig, arguments, kernel.hasEpilogue());
  if (!scratch)
    return nullptr;
  if (*scratch > 0) {
    auto type = RankedTensorType::get({static_cast<int64_t>(*scratch)}, b.getIntegerType(8, /*isSigned=*/false));
    arguments.push_back(plan::ArgumentAttr::get(b.getContext(), plan::Access::Write, type));
  }
  known = cloneBehind(kernel, symbols, kernel.getName() + ".packed");
  known.setConfigAttr(packedConfig);
  known.setArgumentsAttr(b.getArrayAttr(SmallVector<Attribute>(arguments.begin(), arguments.end())));
  known.setBytesMoved(
      APFloat(known.getBytesMoved().convertToDouble() - plainBytes + static_cast<double>(plan::byteCount(packedType))));
  return known;
}

/// Kernels that only products of plain weights called.
void WeightPacking::eraseUnused() {
  llvm::DenseSet<StringRef> used;
  module.walk([&](plan::LaunchOp launch) { used.insert(launch.getKernel()); });
  for (auto [plain, packed] : products)
    if (packed && !used.contains(cast<plan::KernelOp>(plain).getName()))
      symbols.erase(plain);
  products.clear();
}
