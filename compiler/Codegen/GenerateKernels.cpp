//===- GenerateKernels.cpp - Code for the bodies of plan kernels
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/GenerateKernels.h"
#include "compiler/Codegen/LowerToLLVM.h"
#include "compiler/Emit/EmitKernel.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Analysis/ModuleTarget.h"
#include "runtime/plan/meaning/code_contract.h"

#include "llvm/ADT/BitVector.h"

#include <set>

using namespace mlir;
using namespace bowline;

namespace {

class GenerateKernelsPass : public PassWrapper<GenerateKernelsPass, PhasePass<Phase::Codegen>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GenerateKernelsPass)

  GenerateKernelsPass(const Backend &backend, CodegenOptions options) : backend(backend), options(std::move(options)) {}

  StringRef getArgument() const override { return "generate-kernels"; }
  StringRef getDescription() const override { return "Code for the bodies of plan kernels"; }

  void getDependentDialects(DialectRegistry &registry) const override { codegen::registerCodegenDialects(registry); }

  void runOnProgram() override {
    std::unique_ptr<KernelCodegen> codegen = backend.createCodegen(options);
    plan::KernelOp last;
    SymbolTable symbols(getOperation());
    for (auto kernel : getOperation().getOps<plan::KernelOp>()) {
      if (!kernel.getBody())
        continue;
      if (failed(generate(*codegen, kernel, symbols)))
        return signalPassFailure();
      last = kernel;
    }
    if (!last)
      return;
    FailureOr<std::vector<char>> image = codegen->finish();
    if (failed(image)) {
      getOperation().emitError("the generated kernels could not be assembled into one object");
      return signalPassFailure();
    }
    finishCache();
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(last);
    auto type = RankedTensorType::get({static_cast<int64_t>(image->size())}, builder.getI8Type());
    auto data = DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(*image));
    auto made = plan::ImageOp::create(builder, getOperation().getLoc(), codegen->imageFormat(),
                                      cast<ElementsAttr>(data), DenseI64ArrayAttr(), StringAttr());
    if (failed(seal(made, *image)))
      signalPassFailure();
  }

private:
  /// Writes down for which kernels the code was made.
  LogicalResult seal(plan::ImageOp image, ArrayRef<char> data) {
    FailureOr<ModuleTarget> target = ModuleTarget::of(getOperation());
    if (failed(target))
      return failure();
    std::set<Digest> digests;
    for (auto kernel : getOperation().getOps<plan::KernelOp>()) {
      if (!kernel.getSymbol())
        continue;
      FailureOr<std::unique_ptr<fbs::KernelT>> emitted = emitKernel(kernel);
      if (failed(emitted))
        return failure();
      // The code takes the target's addresses. Nothing says so in the program yet: buffers come later.
      for (auto [index, argument] : llvm::enumerate((*emitted)->arguments))
        argument->alignment = target->argumentAlignment(kernel, index);
      digests.insert(ContractOf(**emitted));
    }
    std::vector<fbs::ValueDigest> contracts;
    SmallVector<int64_t> words;
    for (const Digest &digest : digests) {
      contracts.emplace_back(digest.low, digest.high);
      words.append({static_cast<int64_t>(digest.low), static_cast<int64_t>(digest.high)});
    }
    auto *bytes = reinterpret_cast<const uint8_t *>(data.data());
    image.setContracts(ArrayRef<int64_t>(words));
    image.setHash(StringRef(ToHex(CodeHash({bytes, data.size()}, contracts))));
    return success();
  }

  void finishCache() {
    if (!options.cache)
      return;
    options.cache->trim();
    if (!options.cache->problem().ok())
      getOperation().emitRemark("kernels are not kept for the next compilation: ")
          << std::string(options.cache->problem().message());
  }

  LogicalResult generate(KernelCodegen &codegen, plan::KernelOp kernel, SymbolTable &symbols) {
    auto function = symbols.lookup<func::FuncOp>(*kernel.getBody());
    if (!function)
      return kernel.emitOpError("no func.func is named ") << kernel.getBodyAttr();
    if (!kernel.hasEpilogue() && failed(verifyBody(kernel, function)))
      return failure();
    if (auto rows = kernel.getValidRows())
      function->setAttr(kRowCountAttr, IntegerAttr::get(IntegerType::get(&getContext(), 64), rows->front()));
    FailureOr<KernelInfo> info = kernel.hasEpilogue() ? codegen.addEpilogue(function, kernel.getSymName())
                                                      : codegen.add(function, kernel.getSymName());
    if (failed(info))
      return kernel.emitOpError("no code could be generated for ") << kernel.getSymNameAttr();
    kernel.setInPlace(argumentPairs(kernel, function, *info));
    setDependences(kernel, function);
    kernel.setSymbol(StringRef(info->symbol));
    if (info->grid) {
      SmallVector<int64_t> grid = {info->grid->blocks, info->grid->threads};
      grid.append(info->grid->constants);
      kernel.setGrid(ArrayRef<int64_t>(grid));
    } else if (!kernel.hasEpilogue()) {
      kernel.setExtent(info->parallelExtent);
    }
    kernel.removeBodyAttr();
    symbols.erase(function);
    return success();
  }

  /// The operation plan.kernel alone declares a kernel's arguments, and the rows that the kernel leaves out.
  static LogicalResult verifyBody(plan::KernelOp kernel, func::FuncOp function) {
    for (NamedAttribute attribute : function->getDiscardableAttrs())
      return function.emitOpError("has '")
             << attribute.getName().getValue() << "', but only plan.kernel @" << kernel.getSymName()
             << " has attributes of the kernel; remove the attribute from its body";
    SmallVector<Type> inputs, results;
    for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
      plan::ArgumentAttr argument = kernel.getArgument(index);
      (argument.getAccess() == plan::Access::Read ? inputs : results).push_back(argument.getType());
      if (argument.getAccess() == plan::Access::Read && !results.empty())
        return kernel.emitOpError("reads argument ") << index << " behind one that it writes; list the arguments "
                                                     << "that generated code reads before those that it writes";
    }
    auto type = FunctionType::get(kernel.getContext(), inputs, results);
    if (function.getFunctionType() != type)
      return kernel.emitOpError("has arguments of ")
             << type << ", but its body " << kernel.getBodyAttr() << " is " << function.getFunctionType();
    return success();
  }

  /// The arguments of the function from which a value is computed.
  static BitVector argumentsOf(func::FuncOp function, Value value) {
    BitVector arguments(function.getNumArguments());
    llvm::SmallPtrSet<Operation *, 16> seen;
    SmallVector<Value> values = {value};
    while (!values.empty()) {
      Value next = values.pop_back_val();
      if (auto argument = dyn_cast<BlockArgument>(next)) {
        if (argument.getOwner() == &function.front())
          arguments.set(argument.getArgNumber());
        continue; // those of regions belong to an operation that was seen
      }
      Operation *op = next.getDefiningOp();
      if (seen.insert(op).second)
        op->walk([&](Operation *nested) { llvm::append_range(values, nested->getOperands()); });
    }
    return arguments;
  }

  /// Says of each argument that the code writes on which others it depends, where these are not all.
  static void setDependences(plan::KernelOp kernel, func::FuncOp function) {
    // An epilogue's first argument is the product of the kernel's first two.
    unsigned shift = kernel.hasEpilogue() ? 1 : 0;
    Builder builder(kernel.getContext());
    SmallVector<Attribute> lists;
    for (OpOperand &result : function.front().getTerminator()->getOpOperands()) {
      BitVector arguments = argumentsOf(function, result.get());
      if (auto rows = kernel.getValidRows())
        arguments.set(rows->front());
      if (arguments.all())
        continue;
      SmallVector<int64_t> list = {function.getNumArguments() + shift + result.getOperandNumber()};
      if (kernel.hasEpilogue() && arguments.test(0))
        list.push_back(0);
      for (unsigned argument : arguments.set_bits())
        list.push_back(argument + shift);
      lists.push_back(builder.getDenseI64ArrayAttr(list));
    }
    if (!lists.empty())
      kernel.setDependencesAttr(builder.getArrayAttr(lists));
  }

  /// Pairs of the kernel's arguments that may be the same bytes.
  static SmallVector<int64_t> argumentPairs(plan::KernelOp kernel, func::FuncOp function, const KernelInfo &info) {
    // An epilogue's first argument is the product, and the kernel's first are the product's two operands.
    int64_t shift = kernel.hasEpilogue() ? 1 : 0;
    SmallVector<int64_t> pairs;
    for (auto [output, input] : info.inPlace)
      pairs.append({static_cast<int64_t>(function.getNumArguments()) + output + shift, input + shift});
    return pairs;
  }

  const Backend &backend;
  CodegenOptions options;
};

} // namespace

std::unique_ptr<Pass> bowline::createGenerateKernelsPass(const Backend &backend, CodegenOptions options) {
  return std::make_unique<GenerateKernelsPass>(backend, std::move(options));
}
