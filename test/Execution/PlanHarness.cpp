//===- PlanHarness.cpp - Functions compiled to a plan, run, and compared with the reference
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Execution/PlanHarness.h"

#include "checker/PlanChecker.h"
#include "compiler/Equivalence/SequenceInputs.h"
#include "compiler/Interp/Interpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Parser/Parser.h"
#include "runtime/plan/plan_writer.h"
#include "test/Support/test_driver.h"
#include "test/Unit/Runtime/session_tensors.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using llvm::formatv;

std::string test::tensorType(const Shape &shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

std::string Argument::type() const { return tensorType(shape, element); }

HostTensor Argument::draw(Random &random) const {
  if (element == "f32") {
    HostTensor tensor = random.reals(shape, low, high);
    for (double &value : tensor.data)
      value = static_cast<float>(value);
    return tensor;
  }
  HostTensor tensor = random.integers(shape, static_cast<int64_t>(low), static_cast<int64_t>(high));
  if (ascends)
    llvm::sort(tensor.data);
  return tensor;
}

int64_t test::pickSize(Random &random) { return random.pick({1, 2, 3, 7, 8, 13, 16, 17, 31, 33, 64, 67}); }

Shape test::pickShape(Random &random, int64_t rank) {
  Shape shape(rank);
  do {
    for (int64_t &size : shape)
      size = pickSize(random);
  } while (HostTensor(shape).count() > 4000);
  return shape;
}

OwningOpRef<ModuleOp> test::moduleOf(const std::vector<Case> &cases) {
  std::string text;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case &current = cases[i];
    std::string name = "case" + std::to_string(i), arguments, results, values, attributes;
    for (size_t k = 0; k < current.arguments.size(); ++k) {
      const Argument &argument = current.arguments[k];
      arguments += (k ? ", %" : "%") + std::to_string(k) + ": " + argument.type();
      // Indices into a table: the runtime checks them where they enter.
      if (argument.element == "i32" && argument.low == 0)
        arguments += " {graph.limit = " + std::to_string(static_cast<int64_t>(argument.high) + 1) + " : i64}";
      if (size_t left = current.arguments.size() - k; current.sequences && left <= 3)
        arguments += formatv(" {graph.name = \"{0}\"}", ArrayRef<const char *>{"blocks", "lengths", "rows"}[left - 1]);
    }
    if (const auto &sizes = current.sequences)
      attributes = formatv(" attributes {plan.sequences = #plan.sequences<rows = \"rows\", lengths = \"lengths\", "
                           "blocks = \"blocks\", tokens = {0}, block_tokens = {1}, block_count = {2}>}",
                           sizes->tokens, sizes->block_tokens, sizes->block_count);
    for (size_t k = 0; k < current.results.size(); ++k) {
      results += (k ? ", " : "") + current.results[k];
      values += (k ? ", %r" : "%r") + (current.results.size() > 1 ? std::to_string(k) : std::string());
    }
    text += current.variables + "graph.func @" + name + "_function(" + arguments + ") -> (" + results + ")" +
            attributes + " {\n" + current.body + "\ngraph.return " + values + " : " + results + "\n}\ngraph.entry @" +
            name + " [@" + name + "_function] repeat [1]\n";
  }
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context());
  EXPECT_TRUE(module) << text;
  return module;
}

std::unique_ptr<Session> test::sessionOf(ModuleOp module, const CompileOptions &options, const SessionOptions &how) {
  absl::StatusOr<CompileResult> compiled = compileModule(module, options);
  if (!compiled.ok()) {
    ADD_FAILURE() << compiled.status();
    return nullptr;
  }
  auto bytes = WritePlan(*compiled->plan);
  if (!bytes.ok()) {
    ADD_FAILURE() << bytes.status();
    return nullptr;
  }
  auto plan = LoadedPlan::FromBytes({bytes->data(), bytes->size()});
  if (!plan.ok()) {
    ADD_FAILURE() << plan.status();
    return nullptr;
  }
  PlanChecker checker(plan->plan());
  absl::Status sound = checker.check();
  EXPECT_TRUE(sound.ok()) << sound;
  SessionOptions chosen = how;
  if (chosen.driver.empty())
    chosen.driver = TestDriver();
  auto session = Session::Create(std::move(*plan), chosen);
  if (!session.ok()) {
    ADD_FAILURE() << session.status();
    return nullptr;
  }
  return std::move(*session);
}

template <typename T> static void readAs(const Session &session, const TensorRef &from, HostTensor &tensor) {
  llvm::copy(::bowline::testing::ReadTensor<T>(session, from), tensor.data.begin());
}

template <typename T> static void writeAs(const HostTensor &tensor, Session &session, const TensorRef &to) {
  std::vector<T> values(tensor.data.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(tensor.data[i]);
  ::bowline::testing::WriteTensor(session, to, values);
}

HostTensor test::read(const Session &session, const TensorRef &from) {
  HostTensor tensor(Shape(from.shape.begin(), from.shape.end()));
  switch (from.dtype) {
  case fbs::DType::F32:
    readAs<float>(session, from, tensor);
    break;
  case fbs::DType::F64:
    readAs<double>(session, from, tensor);
    break;
  case fbs::DType::I32:
    readAs<int32_t>(session, from, tensor);
    break;
  case fbs::DType::I64:
    readAs<int64_t>(session, from, tensor);
    break;
  case fbs::DType::Bool:
    readAs<uint8_t>(session, from, tensor);
    break;
  default:
    ADD_FAILURE() << "no reader for " << fbs::EnumNameDType(from.dtype);
  }
  return tensor;
}

void test::write(const HostTensor &tensor, Session &session, const TensorRef &to) {
  switch (to.dtype) {
  case fbs::DType::F32:
    return writeAs<float>(tensor, session, to);
  case fbs::DType::F64:
    return writeAs<double>(tensor, session, to);
  case fbs::DType::I32:
    return writeAs<int32_t>(tensor, session, to);
  case fbs::DType::I64:
    return writeAs<int64_t>(tensor, session, to);
  case fbs::DType::U8:
  case fbs::DType::Bool:
    return writeAs<uint8_t>(tensor, session, to);
  default:
    ADD_FAILURE() << "no writer for " << fbs::EnumNameDType(to.dtype);
  }
}

void test::expectWithin(const HostTensor &got, const HostTensor &want, Bound bound) {
  ASSERT_EQ(got.shape, want.shape);
  int wrong = 0;
  for (size_t i = 0; i < want.data.size() && wrong < 3; ++i) {
    double g = got.data[i], w = want.data[i];
    bool same = std::isnan(w)   ? std::isnan(g)
                : std::isinf(w) ? g == w
                                : std::fabs(g - w) <= bound.relative * std::fabs(w) + bound.absolute;
    if (!same && ++wrong)
      ADD_FAILURE() << "element " << i << " of " << want.data.size() << " is " << g << ", not " << w;
  }
}

static std::vector<HostTensor> drawInputs(Random &random, const Case &current) {
  std::vector<HostTensor> inputs;
  for (const Argument &argument : current.arguments)
    inputs.push_back(argument.draw(random));
  if (current.sequences) {
    DrawnSequences drawn = drawSequences(*current.sequences, MixKey(random.integer(0, 1 << 30), 0));
    size_t first = inputs.size() - 3;
    const std::vector<int32_t> *values[] = {&drawn.rows, &drawn.lengths, &drawn.blocks};
    for (size_t i = 0; i < 3; ++i)
      llvm::copy(*values[i], inputs[first + i].data.begin());
  }
  return inputs;
}

/// The same values for the program and for its reference.
static void setVariables(Random &random, ModuleOp module, Interpreter &interpreter, Session &session) {
  ASSERT_TRUE(succeeded(interpreter.initializeVariables()));
  for (auto state : module.getOps<graph::StateOp>()) {
    std::vector<int64_t> shape = state.getTensorType().getShape().vec();
    // Bytes of scales that are numbers, and no large ones.
    bool isBytes = state.getTensorType().getElementType().isUnsignedInteger(8);
    HostTensor value = (isBytes ? Argument{shape, "ui8", 0, 59} : Argument{shape}).draw(random);
    for (auto [index, buffer] : llvm::enumerate(*session.plan().buffers()))
      if (buffer->kind() == fbs::BufferKind::State && buffer->name()->str() == state.getName())
        write(value, session, session.BufferAt(index));
    ASSERT_TRUE(succeeded(interpreter.setVariable(state.getName(), std::move(value))));
  }
}

static void runEntry(Random &random, Session &session, Interpreter &interpreter, const Case &current,
                     const fbs::Entry &entry) {
  SCOPED_TRACE(current.name + "\n" + current.body);
  std::vector<HostTensor> inputs = drawInputs(random, current);
  for (size_t k = 0; k < inputs.size(); ++k)
    write(inputs[k], session, session.BufferAt(entry.inputs()->Get(k)->buffer()));
  absl::Status status = session.Run(entry.name()->str());
  ASSERT_TRUE(status.ok()) << status;
  FailureOr<Interpreter::Tensors> expected = interpreter.run(entry.name()->str(), inputs);
  ASSERT_TRUE(succeeded(expected));
  ASSERT_EQ(expected->size(), entry.outputs()->size());
  for (size_t k = 0; k < expected->size(); ++k) {
    SCOPED_TRACE("result " + std::to_string(k));
    expectWithin(read(session, session.BufferAt(entry.outputs()->Get(k)->buffer())), (*expected)[k], current.bound);
  }
}

void test::checkCases(Random &random, const std::vector<Case> &cases) {
  SCOPED_TRACE(random.trace());
  OwningOpRef<ModuleOp> reference = moduleOf(cases);
  ASSERT_TRUE(reference);
  Interpreter interpreter(*reference);
  for (bool merge : {true, false}) {
    SCOPED_TRACE(merge ? "fusions merged" : "fusions not merged");
    CompileOptions options;
    options.mode = CompileMode::Generate;
    options.threads = 2;
    if (!merge)
      options.disabledSteps = {"merge-fusions"};
    OwningOpRef<ModuleOp> module = reference->clone();
    std::unique_ptr<Session> session = sessionOf(*module, options);
    ASSERT_TRUE(session);
    setVariables(random, *reference, interpreter, *session);
    size_t count = 0;
    for (const fbs::Entry *entry : *session->plan().entries()) {
      if (entry->kind() == fbs::EntryKind::Init)
        continue;
      size_t index = std::stoul(entry->name()->str().substr(4));
      ASSERT_LT(index, cases.size());
      runEntry(random, *session, interpreter, cases[index], *entry);
      ++count;
    }
    ASSERT_EQ(count, cases.size());
  }
}
