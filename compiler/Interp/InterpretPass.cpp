//===- InterpretPass.cpp - Interpretation as the last step of a tool
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/InterpretPass.h"
#include "compiler/Interp/Interpreter.h"
#include "compiler/Support/NpyFile.h"
#include "dialects/Graph/GraphOps.h"
#include "kernels/registry/philox.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;

static constexpr StringLiteral kRandomPrefix("random:");
/// Streams of random inputs begin here, apart from those of variables.
static constexpr uint64_t kFirstInputStream = uint64_t{1} << 32;

namespace {

/// An argument or result of the callee, seen from outside.
struct Port {
  std::string name;
  RankedTensorType type;
  IntegerAttr limit;
};

struct Ports {
  SmallVector<Port> arguments, results;
};

class InterpretPass : public PassWrapper<InterpretPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InterpretPass)

  InterpretPass(InterpretOptions options, raw_ostream &os) : options(std::move(options)), os(&os) {}

  StringRef getArgument() const final { return "interpret"; }
  StringRef getDescription() const final { return "Runs a function with the reference interpreter"; }

  void runOnOperation() final {
    markAllAnalysesPreserved();
    if (failed(interpret()))
      signalPassFailure();
  }

private:
  LogicalResult interpret();
  Ports collectPorts(SymbolTable &symbols, ArrayRef<RankedTensorType> argumentTypes);
  FailureOr<Interpreter::Tensors> makeInputs(ArrayRef<Port> ports);
  LogicalResult drawInput(const Port &port, uint64_t stream, int64_t seed, HostTensor &tensor);
  LogicalResult readInput(const Port &port, StringRef path, HostTensor &tensor);
  void printSummary(const Port &port, const HostTensor &tensor);
  LogicalResult writeResult(const Port &port, const HostTensor &tensor);

  InterpretOptions options;
  raw_ostream *os;
};

} // namespace

LogicalResult InterpretPass::interpret() {
  ModuleOp module = getOperation();
  // From phase `local` on functions are in the module of a role, which is whole where there is one.
  if (auto roles = module.getOps<ModuleOp>(); llvm::hasSingleElement(roles))
    module = *roles.begin();
  Interpreter interpreter(module);
  auto types = interpreter.argumentTypes(options.callee);
  if (failed(types))
    return failure();
  SymbolTable symbols(module);
  Ports ports = collectPorts(symbols, *types);
  FailureOr<Interpreter::Tensors> inputs = makeInputs(ports.arguments);
  if (failed(inputs) || failed(interpreter.initializeVariables(options.seed)))
    return failure();
  FailureOr<Interpreter::Tensors> results = interpreter.run(options.callee, *inputs);
  if (failed(results))
    return failure();
  for (auto [port, tensor] : llvm::zip_equal(ports.results, *results)) {
    printSummary(port, tensor);
    if (failed(writeResult(port, tensor)))
      return failure();
  }
  return success();
}

Ports InterpretPass::collectPorts(SymbolTable &symbols, ArrayRef<RankedTensorType> argumentTypes) {
  SmallVector<FuncOp> functions;
  Operation *callee = symbols.lookup(options.callee);
  if (auto entry = dyn_cast<EntryOp>(callee))
    for (auto reference : entry.getFunctions().getAsRange<FlatSymbolRefAttr>())
      functions.push_back(symbols.lookup<FuncOp>(reference.getValue()));
  else
    functions.push_back(cast<FuncOp>(callee));
  Ports ports;
  for (FuncOp function : functions)
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      ports.arguments.push_back({function.getArgName(i), argumentTypes[ports.arguments.size()],
                                 function.getArgAttrOfType<IntegerAttr>(i, FuncOp::kLimitAttr)});
  FuncOp last = functions.back();
  for (auto [i, type] : llvm::enumerate(last.getResultTypes()))
    ports.results.push_back({last.getResultName(i), cast<RankedTensorType>(type), {}});
  return ports;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

FailureOr<Interpreter::Tensors> InterpretPass::makeInputs(ArrayRef<Port> ports) {
  bool isRandom = options.inputs.size() == 1 && StringRef(options.inputs[0]).starts_with(kRandomPrefix);
  int64_t seed = 0;
  if (isRandom && StringRef(options.inputs[0]).drop_front(kRandomPrefix.size()).getAsInteger(10, seed))
    return getOperation().emitError("'") << options.inputs[0] << "': the seed must be an integer, as in 'random:1'";
  if (!isRandom && options.inputs.size() != ports.size())
    return getOperation().emitError("@") << options.callee << " takes " << ports.size() << " inputs but "
                                         << options.inputs.size()
                                         << " are given; name one .npy file for each, or 'random:SEED' for all";
  Interpreter::Tensors tensors;
  for (auto [i, port] : llvm::enumerate(ports)) {
    HostTensor &tensor = tensors.emplace_back(port.type.getShape().vec());
    if (failed(isRandom ? drawInput(port, kFirstInputStream + i, seed, tensor)
                        : readInput(port, options.inputs[i], tensor)))
      return failure();
  }
  return tensors;
}

LogicalResult InterpretPass::drawInput(const Port &port, uint64_t stream, int64_t seed, HostTensor &tensor) {
  PhiloxKey key = MixKey(static_cast<uint64_t>(seed), stream);
  bool isFloat = isa<FloatType>(port.type.getElementType());
  if (!isFloat && !port.limit && !port.type.getElementType().isInteger(1))
    return getOperation().emitError("input '")
           << port.name << "' of @" << options.callee << " has integer elements and no '" << FuncOp::kLimitAttr
           << "': its random values need a bound; add the attribute or give a .npy file";
  double limit = port.limit ? static_cast<double>(port.limit.getInt()) : 2;
  for (auto [i, value] : llvm::enumerate(tensor.data)) {
    double uniform = UniformBlock(key, i / 4)[i % 4] * limit;
    value = !isFloat ? std::floor(uniform) : port.limit ? uniform : NormalBlock(key, i / 4)[i % 4];
  }
  return success();
}

LogicalResult InterpretPass::readInput(const Port &port, StringRef path, HostTensor &tensor) {
  llvm::Expected<NpyArray> array = readNpyFile(path);
  if (!array)
    return getOperation().emitError("input '") << port.name << "': " << llvm::toString(array.takeError());
  if (isFloat(array->type) != isa<FloatType>(port.type.getElementType()))
    return getOperation().emitError("input '")
           << port.name << "': '" << path << "' holds " << (isFloat(array->type) ? "floats" : "integers")
           << " but the argument's type is " << port.type;
  if (ArrayRef<int64_t>(array->tensor.shape) != port.type.getShape()) {
    InFlightDiagnostic diagnostic = getOperation().emitError("input '")
                                    << port.name << "': '" << path << "' has shape [";
    llvm::interleaveComma(array->tensor.shape, diagnostic);
    return diagnostic << "] but the argument's type is " << port.type;
  }
  tensor = std::move(array->tensor);
  if (!port.limit)
    return success();
  auto limit = static_cast<double>(port.limit.getInt());
  bool takesLimit = isa<FloatType>(port.type.getElementType());
  for (auto [i, value] : llvm::enumerate(tensor.data))
    if (!(value >= 0 && (value < limit || (takesLimit && value == limit))))
      return getOperation().emitError("input '")
             << port.name << "': element " << i << " of '" << path << "' is " << llvm::formatv("{0:g}", value).str()
             << ", outside of [0, " << port.limit.getInt() << (takesLimit ? "]" : ")");
  return success();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// `loss : tensor<2x3xf32> = [0.5, 1.25, ...] sum 12.5`
void InterpretPass::printSummary(const Port &port, const HostTensor &tensor) {
  constexpr size_t kShown = 8;
  double sum = 0;
  for (double value : tensor.data)
    sum += value;
  *os << port.name << " : " << port.type << " = [";
  llvm::interleaveComma(ArrayRef<double>(tensor.data).take_front(kShown), *os,
                        [&](double value) { *os << llvm::format("%.6g", value); });
  *os << (tensor.data.size() > kShown ? ", ...]" : "]") << llvm::format(" sum %.6g\n", sum);
}

LogicalResult InterpretPass::writeResult(const Port &port, const HostTensor &tensor) {
  if (options.outputs.empty())
    return success();
  if (std::error_code error = llvm::sys::fs::create_directories(options.outputs))
    return getOperation().emitError("'") << options.outputs << "': cannot be created: " << error.message();
  Type element = port.type.getElementType();
  ElementType type = isa<FloatType>(element) ? ElementType::kF64
                     : element.isInteger(64) ? ElementType::kI64
                                             : ElementType::kI32;
  SmallString<128> path(options.outputs);
  llvm::sys::path::append(path, port.name + ".npy");
  if (llvm::Error error = writeNpyFile(path, {type, tensor}))
    return getOperation().emitError("'") << path << "': cannot be written: " << llvm::toString(std::move(error));
  return success();
}

std::unique_ptr<Pass> bowline::createInterpretPass(InterpretOptions options, raw_ostream &os) {
  return std::make_unique<InterpretPass>(std::move(options), os);
}
