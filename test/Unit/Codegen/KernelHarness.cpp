//===- KernelHarness.cpp - Kernels compiled, loaded and compared with their reference
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Codegen/KernelHarness.h"
#include "compiler/Codegen/LowerToLLVM.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "compiler/Codegen/TargetCpu.h"
#include "dialects/Graph/GraphDialect.h"
#include "dialects/Graph/GraphOpInterfaces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "types/half.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

static constexpr size_t kPage = 4096;

std::vector<std::string> test::runnableTargets() {
  std::vector<std::string> names;
  std::string most = codegen::targetCpu("native")->name;
  for (const char *name : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4+avx512bf16"}) {
    names.emplace_back(name);
    if (name == most)
      break;
  }
  return names;
}

Buffer::Buffer(size_t bytes) : bytes(bytes) {
  // As close to the trap as alignment allows.
  size_t aligned = (bytes + 63) / 64 * 64, pages = (aligned + kPage - 1) / kPage * kPage;
  mappingBytes = pages + kPage;
  mapping =
      static_cast<char *>(mmap(nullptr, mappingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(mapping + pages, kPage, PROT_NONE);
  start = mapping + pages - aligned;
}
Buffer::Buffer(Buffer &&other) noexcept
    : mapping(std::exchange(other.mapping, nullptr)), mappingBytes(other.mappingBytes), bytes(other.bytes),
      start(other.start) {}
Buffer::~Buffer() {
  if (mapping)
    munmap(mapping, mappingBytes);
}
std::vector<char> Buffer::copy() const { return std::vector<char>(start, start + bytes); }
void Buffer::assign(const std::vector<char> &from) { std::memcpy(start, from.data(), from.size()); }

static Type elementOf(Type type) { return cast<RankedTensorType>(type).getElementType(); }

static size_t elementBytes(Type type) { return (elementOf(type).getIntOrFloatBitWidth() + 7) / 8; }

size_t test::bytesOf(Type type) { return cast<RankedTensorType>(type).getNumElements() * elementBytes(type); }

template <typename T> static void put(void *to, size_t i, T value) {
  std::memcpy(static_cast<char *>(to) + i * sizeof(T), &value, sizeof(T));
}
template <typename T> static T get(const void *from, size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char *>(from) + i * sizeof(T), sizeof(T));
  return value;
}

void test::encode(const HostTensor &tensor, Type type, void *to) {
  Type element = elementOf(type);
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    double value = tensor.data[i];
    if (element.isF32())
      put<float>(to, i, value);
    else if (element.isF64())
      put<double>(to, i, value);
    else if (element.isBF16())
      put<uint16_t>(to, i, std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
    else if (element.isF16())
      put<uint16_t>(to, i, F32ToF16(static_cast<float>(value)));
    else if (element.isInteger(64))
      put<int64_t>(to, i, value);
    else if (element.isInteger(32))
      put<int32_t>(to, i, value);
    else
      put<int8_t>(to, i, value);
  }
}

HostTensor test::decode(const void *from, Type type) {
  HostTensor tensor(cast<RankedTensorType>(type).getShape().vec());
  Type element = elementOf(type);
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    if (element.isF32())
      tensor.data[i] = get<float>(from, i);
    else if (element.isF64())
      tensor.data[i] = get<double>(from, i);
    else if (element.isBF16())
      tensor.data[i] = std::bit_cast<float>(static_cast<uint32_t>(get<uint16_t>(from, i)) << 16);
    else if (element.isF16())
      tensor.data[i] = F16ToF32(get<uint16_t>(from, i));
    else if (element.isInteger(64))
      tensor.data[i] = get<int64_t>(from, i);
    else if (element.isInteger(32))
      tensor.data[i] = get<int32_t>(from, i);
    else
      tensor.data[i] = get<int8_t>(from, i);
  }
  return tensor;
}

Kernels::Kernels(const std::string &source, const std::string &cpu, int64_t streamedBytes) : isNative(cpu == "native") {
  DialectRegistry registry;
  codegen::registerCodegenDialects(registry);
  graph::registerElementwiseModels(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  module = parseSourceString<ModuleOp>(source, &context);
  if (!module) {
    ADD_FAILURE() << "does not parse:\n" << source;
    return;
  }
  CpuTarget target;
  target.cpu = cpu;
  target.streamedBytes = streamedBytes;
  CpuCodegen codegen(target);
  for (auto function : module->getOps<func::FuncOp>()) {
    auto info = codegen.add(function);
    if (failed(info)) {
      ADD_FAILURE() << "no code for " << function.getSymName().str();
      return;
    }
    infos.push_back(*info);
  }
  auto compiled = codegen.finish();
  if (failed(compiled)) {
    ADD_FAILURE() << "no image";
    return;
  }
  bytes = *compiled;
  int fd = memfd_create("kernels", MFD_CLOEXEC);
  if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    ADD_FAILURE() << "cannot fill the image";
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    ADD_FAILURE() << dlerror();
  // Open until the image is gone: the loader takes two libraries of one name for the same.
  file = fd;
}

Kernels::~Kernels() {
  if (handle)
    dlclose(handle);
  if (file >= 0)
    close(file);
}

func::FuncOp Kernels::function(size_t index) {
  auto functions = module->getOps<func::FuncOp>();
  return *std::next(functions.begin(), index);
}

Kernels::Entry Kernels::entry(size_t index) const {
  return reinterpret_cast<Entry>(dlsym(handle, infos[index].symbol.c_str()));
}

HostTensor Kernels::random(Type type, std::mt19937_64 &generator, double scale, int64_t low, int64_t high) {
  HostTensor tensor(cast<RankedTensorType>(type).getShape().vec());
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int64_t> integer(low, high - 1);
  for (double &value : tensor.data)
    value = elementOf(type).isInteger(1)      ? static_cast<double>(integer(generator) & 1)
            : isa<FloatType>(elementOf(type)) ? scale * normal(generator)
                                              : static_cast<double>(integer(generator));
  // Round to the type, so that both sides see the same numbers.
  std::vector<char> rounded(bytesOf(type));
  encode(tensor, type, rounded.data());
  return decode(rounded.data(), type);
}

std::vector<HostTensor> Kernels::evaluate(size_t index, const std::vector<HostTensor> &inputs) {
  func::FuncOp kernel = function(index);
  llvm::DenseMap<Value, HostTensor> values;
  for (auto [argument, input] : llvm::zip_equal(kernel.getArguments(), inputs))
    values[argument] = input;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    SmallVector<HostTensor> operands, results;
    for (Value operand : op.getOperands())
      operands.push_back(values.at(operand));
    for (Type type : op.getResultTypes())
      results.emplace_back(cast<RankedTensorType>(type).getShape().vec());
    auto interpretable = dyn_cast<graph::Interpretable>(&op);
    if (!interpretable || failed(interpretable.interpret(operands, results))) {
      ADD_FAILURE() << "no reference for " << op.getName().getStringRef().str();
      return {};
    }
    for (auto [value, result] : llvm::zip_equal(op.getResults(), results))
      values[value] = result;
  }
  std::vector<HostTensor> outputs;
  for (Value value : kernel.getBody().front().getTerminator()->getOperands())
    outputs.push_back(values.at(value));
  return outputs;
}

namespace {

/// The arguments of a kernel: inputs, and outputs of which no byte is right yet. Where `inPlace` names a pair, the
/// output is the input's buffer.
struct Arguments {
  Arguments(FunctionType type, const std::vector<HostTensor> &inputs, ArrayRef<std::pair<int, int>> inPlace)
      : type(type) {
    for (auto [input, inputType] : llvm::zip_equal(inputs, type.getInputs())) {
      buffers.emplace_back(bytesOf(inputType));
      encode(input, inputType, buffers.back().data());
    }
    for (Type result : type.getResults()) {
      buffers.emplace_back(bytesOf(result));
      std::memset(buffers.back().data(), 0xA5, bytesOf(result));
    }
    for (Buffer &buffer : buffers)
      addresses.push_back(buffer.data());
    for (auto [output, input] : inPlace)
      addresses[inputs.size() + output] = addresses[input];
  }

  std::vector<std::vector<char>> outputs() const {
    std::vector<std::vector<char>> result;
    for (auto [output, outputType] : llvm::enumerate(type.getResults())) {
      const char *data = static_cast<const char *>(addresses[type.getNumInputs() + output]);
      result.emplace_back(data, data + bytesOf(outputType));
    }
    return result;
  }

  FunctionType type;
  std::vector<Buffer> buffers;
  std::vector<void *> addresses;
};

} // namespace

std::vector<std::vector<char>> Kernels::run(size_t index, const std::vector<HostTensor> &inputs,
                                            const std::vector<int64_t> &cuts, ArrayRef<std::pair<int, int>> inPlace) {
  Arguments arguments(function(index).getFunctionType(), inputs, inPlace);
  std::vector<std::pair<int64_t, int64_t>> order;
  int64_t from = 0;
  for (int64_t cut : cuts)
    order.emplace_back(std::exchange(from, cut), cut);
  order.emplace_back(from, infos[index].parallelExtent);
  // Last piece first: no order is promised.
  for (auto [first, last] : llvm::reverse(order))
    entry(index)(arguments.addresses.data(), first, last);
  return arguments.outputs();
}

void Kernels::compare(size_t index, const std::vector<std::vector<char>> &outputs,
                      const std::vector<HostTensor> &expected, double relative, double absolute) {
  FunctionType type = function(index).getFunctionType();
  for (auto [output, want] : llvm::enumerate(expected)) {
    HostTensor got = decode(outputs[output].data(), type.getResult(output));
    double largest = 1;
    for (double value : want.data)
      if (std::isfinite(value))
        largest = std::max(largest, std::fabs(value));
    size_t wrong = 0;
    for (size_t i = 0; i < want.data.size() && wrong < 3; ++i) {
      bool same = std::isnan(want.data[i])   ? std::isnan(got.data[i])
                  : std::isinf(want.data[i]) ? got.data[i] == want.data[i]
                                             : std::fabs(got.data[i] - want.data[i]) <=
                                                   relative * std::fabs(want.data[i]) + absolute * largest;
      if (!same && ++wrong)
        ADD_FAILURE() << "output " << output << " element " << i << " is " << got.data[i] << ", not " << want.data[i];
    }
  }
}

std::vector<std::vector<char>> Kernels::runOnGpu(const EmulatedKernel &kernel, size_t index,
                                                 const std::vector<HostTensor> &inputs,
                                                 ArrayRef<std::pair<int, int>> inPlace, uint64_t seed) {
  Arguments arguments(function(index).getFunctionType(), inputs, inPlace);
  kernel.run(arguments.addresses, seed);
  return arguments.outputs();
}

/// As many of the pairs at once as there can be.
static SmallVector<std::pair<int, int>> usedTogether(ArrayRef<std::pair<int, int>> pairs) {
  std::set<int> outputs, sources;
  SmallVector<std::pair<int, int>> together;
  for (auto [output, input] : pairs)
    if (!outputs.count(output) && !sources.count(input)) {
      outputs.insert(output);
      sources.insert(input);
      together.emplace_back(output, input);
    }
  return together;
}

void Kernels::check(size_t index, const std::vector<HostTensor> &inputs, double relative, double absolute) {
  ASSERT_TRUE(isLoaded());
  SCOPED_TRACE(infos[index].symbol);
  auto whole = run(index, inputs);
  auto expected = evaluate(index, inputs);
  compare(index, whole, expected, relative, absolute);
  int64_t extent = infos[index].parallelExtent;
  ASSERT_GE(extent, 1);
  std::vector<int64_t> cuts;
  for (int64_t cut : {extent / 3, extent / 2, extent - 1})
    if (cut > 0 && (cuts.empty() || cut > cuts.back()))
      cuts.push_back(cut);
  EXPECT_EQ(run(index, inputs, cuts), whole) << "depends on how the range is divided";
  for (auto [output, input] : infos[index].inPlace) {
    auto shared = run(index, inputs, cuts, std::pair<int, int>(output, input));
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_EQ(shared[i], whole[i]) << "output " << i << " differs with output " << output << " in place of input "
                                     << input;
  }
  EXPECT_EQ(run(index, inputs, cuts, usedTogether(infos[index].inPlace)), whole) << "differs with all pairs in place";
  if (!isNative)
    return;

  SCOPED_TRACE("code for GPUs");
  EmulatedKernel gpu(function(index));
  if (!gpu.isLoaded())
    return;
  auto first = runOnGpu(gpu, index, inputs, {}, 1);
  compare(index, first, expected, relative, absolute);
  SmallVector<std::pair<int, int>> together = usedTogether(gpu.info().inPlace);
  // Several orders: a race of blocks shows in some.
  for (uint64_t seed : {2, 3})
    EXPECT_EQ(runOnGpu(gpu, index, inputs, together, seed), first)
        << "depends on the order of threads, or differs with all pairs in place";
  for (auto pair : gpu.info().inPlace)
    if (!llvm::is_contained(together, pair))
      EXPECT_EQ(runOnGpu(gpu, index, inputs, pair, 4), first)
          << "differs with output " << pair.first << " in place of input " << pair.second;
}

void Kernels::checkRandom(size_t index, uint64_t seed, double relative, double absolute, double scale) {
  ASSERT_TRUE(isLoaded());
  std::mt19937_64 generator(seed);
  std::vector<HostTensor> inputs;
  for (Type type : function(index).getArgumentTypes())
    inputs.push_back(random(type, generator, scale));
  check(index, inputs, relative, absolute);
}
