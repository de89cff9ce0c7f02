//===- RandomProgram.cpp - Graph programs nobody would write by hand
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Passes/RandomProgram.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace bowline::test;
using llvm::formatv;

namespace {

constexpr int64_t kMaxElements = 240;

int64_t countOf(const Shape &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

std::string typeText(const Shape &shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

std::string listText(llvm::ArrayRef<int64_t> values) {
  return formatv("[{0:$[, ]}]", llvm::make_range(values.begin(), values.end()));
}

struct Value {
  std::string name, element;
  Shape shape;
  std::string type() const { return typeText(shape, element); }
};

struct Variable {
  std::string name;
  Shape shape;
  bool isAccumulator;
  std::string type() const { return typeText(shape, "f32"); }
};

/// The body of one function.
class FunctionWriter {
public:
  FunctionWriter(Random &random, const std::vector<Variable> &variables) : random(random), variables(variables) {}

  void addArgument(const Value &value) { values.push_back(value); }

  void randomOperations(int64_t count, bool mayUseAccumulators) {
    for (int64_t i = 0; i < count; ++i)
      switch (random.integer(0, 20)) {
      case 0:
        unary("math.tanh");
        break;
      case 1:
        unary("graph.silu");
        break;
      case 2:
      case 3:
        binary("arith.addf");
        break;
      case 4:
        binary("arith.subf");
        break;
      case 5:
        binary("arith.maximumf");
        break;
      case 6:
        product();
        break;
      case 7:
        constant();
        break;
      case 8:
        reduce();
        break;
      case 9:
        broadcast();
        break;
      case 10:
        reorder();
        break;
      case 11:
        cut();
        break;
      case 12:
        contract();
        break;
      case 13:
        norm();
        break;
      case 14:
        rows();
        break;
      case 15:
        integers();
        break;
      case 16:
        read(pickVariable(mayUseAccumulators));
        break;
      case 17:
        write(pickVariable(mayUseAccumulators));
        break;
      case 18:
        linear();
        break;
      case 19:
        loss();
        break;
      case 20:
        columnSum();
        break;
      }
  }

  const Variable &pickVariable(bool mayUseAccumulators) {
    while (true) {
      const Variable &variable = variables[random.integer(0, variables.size() - 1)];
      if (mayUseAccumulators || !variable.isAccumulator)
        return variable;
    }
  }

  Value read(const Variable &variable) {
    return emit(variable.shape, "f32", formatv("graph.read @{0} : {1}", variable.name, variable.type()));
  }

  void write(const Variable &variable) {
    Value value = ofShape(variable.shape);
    body += formatv("  graph.write @{0}, {1} : {2}\n", variable.name, value.name, value.type());
  }

  Value pickAny() { return values[random.integer(0, values.size() - 1)]; }

  std::string body;

private:
  Value emit(const Shape &shape, const std::string &element, const std::string &operation) {
    Value value{"%v" + std::to_string(next++), element, shape};
    body += "  " + value.name + " = " + operation + "\n";
    values.push_back(value);
    return value;
  }

  Value pickFloat() {
    std::vector<Value> floats;
    for (const Value &value : values)
      if (value.element == "f32")
        floats.push_back(value);
    return floats.empty() ? constant() : floats[random.integer(0, floats.size() - 1)];
  }

  /// A value of that shape: one that exists if possible, the youngest more often.
  Value ofShape(const Shape &shape) {
    std::vector<Value> fitting;
    for (const Value &value : values)
      if (value.element == "f32" && value.shape == shape)
        fitting.push_back(value);
    if (fitting.empty())
      return constantOf(shape);
    return random.flip() ? fitting.back() : fitting[random.integer(0, fitting.size() - 1)];
  }

  Value squash(const Value &value) {
    return emit(value.shape, "f32", formatv("math.tanh {0} : {1}", value.name, value.type()));
  }

  Value constant() { return constantOf(Shape(random.integer(0, 1), 3)); }

  Value constantOf(const Shape &shape) {
    std::string content = std::to_string(random.real(-1, 1));
    if (shape.size() == 1 && random.flip()) {
      std::vector<std::string> elements;
      for (int64_t i = 0; i < shape[0]; ++i)
        elements.push_back(std::to_string(random.real(-1, 1)));
      content = "[" + llvm::join(elements, ", ") + "]";
    }
    return emit(shape, "f32", formatv("arith.constant dense<{0}> : {1}", content, typeText(shape, "f32")));
  }

  void unary(const char *name) {
    Value x = pickFloat();
    emit(x.shape, "f32", formatv("{0} {1} : {2}", name, x.name, x.type()));
  }

  Value binary(const char *name) {
    Value x = pickFloat(), y = ofShape(x.shape);
    return emit(x.shape, "f32", formatv("{0} {1}, {2} : {3}", name, x.name, y.name, x.type()));
  }

  void product() { squash(binary("arith.mulf")); }

  void reduce() {
    Value x = pickFloat();
    llvm::SmallVector<int64_t> dims = random.selection(x.shape.size());
    if (!x.shape.empty() && random.flip())
      dims = {static_cast<int64_t>(x.shape.size()) - 1};
    Shape shape;
    for (size_t dim = 0; dim < x.shape.size(); ++dim)
      if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
        shape.push_back(x.shape[dim]);
    squash(emit(shape, "f32",
                formatv("graph.reduce {0} {1} dims {2} : ({3}) -> {4}", random.flip() ? "sum" : "max", x.name,
                        listText(dims), x.type(), typeText(shape, "f32"))));
  }

  void broadcast() {
    Value x = pickFloat();
    Shape shape = x.shape;
    llvm::SmallVector<int64_t> dims;
    int64_t at = random.integer(0, shape.size());
    int64_t size = random.pick({2, 3, 5});
    if (countOf(shape) * size > kMaxElements)
      return;
    for (int64_t dim = 0; dim < static_cast<int64_t>(x.shape.size()); ++dim)
      dims.push_back(dim < at ? dim : dim + 1);
    shape.insert(shape.begin() + at, size);
    emit(shape, "f32",
         formatv("graph.broadcast {0} dims {1} : ({2}) -> {3}", x.name, listText(dims), x.type(),
                 typeText(shape, "f32")));
  }

  void reorder() {
    Value x = pickFloat();
    if (random.flip()) {
      Shape flat = random.flip() ? Shape{countOf(x.shape)} : Shape{1, countOf(x.shape)};
      emit(flat, "f32", formatv("graph.reshape {0} : ({1}) -> {2}", x.name, x.type(), typeText(flat, "f32")));
      return;
    }
    llvm::SmallVector<int64_t> perm = random.permutation(x.shape.size());
    Shape shape;
    for (int64_t dim : perm)
      shape.push_back(x.shape[dim]);
    emit(shape, "f32",
         formatv("graph.transpose {0} perm {1} : ({2}) -> {3}", x.name, listText(perm), x.type(),
                 typeText(shape, "f32")));
  }

  /// A slice, a pad or a concatenation.
  void cut() {
    Value x = pickFloat();
    if (x.shape.empty())
      return;
    Shape shape = x.shape;
    if (random.flip()) {
      Shape at(x.shape.size());
      for (size_t dim = 0; dim < at.size(); ++dim) {
        at[dim] = random.integer(0, x.shape[dim] - 1);
        shape[dim] = random.integer(1, x.shape[dim] - at[dim]);
      }
      emit(shape, "f32",
           formatv("graph.slice {0} at {1} sizes {2} : ({3}) -> {4}", x.name, listText(at), listText(shape), x.type(),
                   typeText(shape, "f32")));
    } else if (countOf(shape) * 2 > kMaxElements) {
      return;
    } else if (random.flip()) {
      Shape low(shape.size()), high(shape.size());
      low[0] = random.integer(0, 1), high.back() = random.integer(0, 1);
      for (size_t dim = 0; dim < low.size(); ++dim)
        shape[dim] += low[dim] + high[dim];
      emit(shape, "f32",
           formatv("graph.pad {0} low {1} high {2} : ({3}) -> {4}", x.name, listText(low), listText(high), x.type(),
                   typeText(shape, "f32")));
    } else {
      Value y = ofShape(shape);
      int64_t dim = random.integer(0, shape.size() - 1);
      shape[dim] *= 2;
      emit(shape, "f32",
           formatv("graph.concat {0}, {1} dim {2} : ({3}, {3}) -> {4}", x.name, y.name, dim, x.type(),
                   typeText(shape, "f32")));
    }
  }

  void contract() {
    Value x = pickFloat(), y = pickFloat();
    llvm::SmallVector<int64_t> free = random.permutation(y.shape.size());
    llvm::SmallVector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
    Shape lhsFree, shape;
    for (int64_t dim : random.permutation(x.shape.size())) {
      auto partner = llvm::find_if(free, [&](int64_t other) { return y.shape[other] == x.shape[dim]; });
      if (partner == free.end() || random.integer(0, 3) == 0)
        continue;
      bool isBatch = random.integer(0, 2) == 0;
      (isBatch ? lhsBatch : lhsContract).push_back(dim);
      (isBatch ? rhsBatch : rhsContract).push_back(*partner);
      free.erase(partner);
    }
    for (int64_t dim : lhsBatch)
      shape.push_back(x.shape[dim]);
    for (int64_t dim = 0; dim < static_cast<int64_t>(x.shape.size()); ++dim)
      if (!llvm::is_contained(lhsBatch, dim) && !llvm::is_contained(lhsContract, dim))
        shape.push_back(x.shape[dim]);
    for (int64_t dim = 0; dim < static_cast<int64_t>(y.shape.size()); ++dim)
      if (llvm::is_contained(free, dim))
        shape.push_back(y.shape[dim]);
    if (countOf(shape) > kMaxElements || shape.size() > 4)
      return;
    squash(emit(shape, "f32",
                formatv("graph.dot_general {0}, {1} batch {2} x {3} contract {4} x {5} : ({6}, {7}) -> {8}", x.name,
                        y.name, listText(lhsBatch), listText(rhsBatch), listText(lhsContract), listText(rhsContract),
                        x.type(), y.type(), typeText(shape, "f32"))));
  }

  /// Different numbers, which no pass folds.
  Value table(const Shape &shape) {
    std::vector<std::string> elements;
    for (int64_t i = countOf(shape); i > 0; --i)
      elements.push_back(std::to_string(random.real(-1, 1)));
    Value flat = emit(
        {countOf(shape)}, "f32",
        formatv("arith.constant dense<[{0}]> : {1}", llvm::join(elements, ", "), typeText({countOf(shape)}, "f32")));
    return reshaped(flat, shape);
  }

  Value reshaped(const Value &value, const Shape &shape) {
    return emit(shape, value.element,
                formatv("graph.reshape {0} : ({1}) -> {2}", value.name, value.type(), typeText(shape, value.element)));
  }

  /// A value with rows, of at least one dimension.
  Value pickRows() {
    Value x = pickFloat();
    return x.shape.empty() ? reshaped(x, {1}) : x;
  }

  Value multiply(const Value &x, const Value &w, const std::string &dims, const Shape &shape) {
    return emit(shape, "f32",
                formatv("graph.dot_general {0}, {1} contract {2} : ({3}, {4}) -> {5}", x.name, w.name, dims, x.type(),
                        w.type(), typeText(shape, "f32")));
  }

  Value repeated(const Value &x, llvm::ArrayRef<int64_t> dims, const Shape &shape) {
    return emit(shape, "f32",
                formatv("graph.broadcast {0} dims {1} : ({2}) -> {3}", x.name, listText(dims), x.type(),
                        typeText(shape, "f32")));
  }

  /// A weight of either layout on `x`: the product.
  Value applyWeight(const Value &x, int64_t outputs, Value &weight, bool &outputsFirst) {
    int64_t inner = x.shape.back(), last = x.shape.size() - 1;
    outputsFirst = random.flip();
    weight = table(outputsFirst ? Shape{outputs, inner} : Shape{inner, outputs});
    Shape shape = x.shape;
    shape.back() = outputs;
    return multiply(x, weight, formatv("[{0}] x [{1}]", last, outputsFirst ? 1 : 0), shape);
  }

  /// A linear layer: bias, activation, a factor per row, a residual, and sometimes a norm behind them.
  void linear() {
    Value x = pickRows(), weight;
    bool outputsFirst;
    int64_t outputs = random.pick({1, 2, 3, 5});
    if (countOf(x.shape) / x.shape.back() * outputs > kMaxElements)
      return;
    Value y = squash(applyWeight(x, outputs, weight, outputsFirst));
    Shape rows(y.shape.begin(), y.shape.end() - 1);
    int64_t last = rows.size();
    auto combine = [&](const char *name, const Value &other) {
      y = emit(y.shape, "f32", formatv("arith.{0} {1}, {2} : {3}", name, y.name, other.name, y.type()));
    };
    if (random.flip())
      combine("addf", repeated(table({outputs}), {last}, y.shape));
    if (random.flip())
      y = emit(y.shape, "f32", formatv("graph.silu {0} : {1}", y.name, y.type()));
    if (random.flip())
      combine("mulf", repeated(table(rows), llvm::to_vector(llvm::seq<int64_t>(0, last)), y.shape));
    if (random.flip())
      combine("addf", ofShape(y.shape));
    if (random.flip()) {
      Value scale = table({outputs});
      emit(y.shape, "f32",
           formatv("graph.rms_norm {0}, {1} eps 1.0e-2 : ({2}, {3}) -> {2}", y.name, scale.name, y.type(),
                   scale.type()));
    }
    squash(y);
  }

  /// A loss on a linear layer, and sometimes its gradient with its products.
  void loss() {
    Value x = pickRows(), weight;
    bool outputsFirst;
    int64_t classes = random.pick({1, 2, 5});
    Shape rows(x.shape.begin(), x.shape.end() - 1);
    if (countOf(rows) * classes > kMaxElements)
      return;
    int64_t last = rows.size();
    x = squash(x);
    Value logits = applyWeight(x, classes, weight, outputsFirst);
    std::vector<std::string> numbers;
    for (int64_t i = countOf(rows); i > 0; --i)
      numbers.push_back(std::to_string(random.integer(-1, classes - 1)));
    Value labels = reshaped(
        emit({countOf(rows)}, "i32",
             formatv("arith.constant dense<[{0}]> : {1}", llvm::join(numbers, ", "), typeText({countOf(rows)}, "i32"))),
        rows);
    std::string stat = typeText(rows, "f32");
    Value seed = table(rows);
    std::string name = "%v" + std::to_string(next++);
    body += formatv("  {0}:2 = graph.softmax_cross_entropy {1}, {2} : ({3}, {4}) -> ({5}, {5})\n", name, logits.name,
                    labels.name, logits.type(), labels.type(), stat);
    values.push_back({name + "#0", "f32", rows});
    if (random.integer(0, 3) == 0) // a reader that forbids tiles
      squash(logits);
    if (random.integer(0, 3) == 0)
      return;
    Value grad = emit(logits.shape, "f32",
                      formatv("graph.softmax_cross_entropy_grad {0}, {1}, {2}#1, {3} : ({4}, {5}, {6}, {6}) -> {4}",
                              logits.name, labels.name, name, seed.name, logits.type(), labels.type(), stat));
    values.pop_back(); // read by its products alone, most of the time
    if (random.flip())
      squash(multiply(grad, weight, formatv("[{0}] x [{1}]", last, outputsFirst ? 0 : 1), x.shape));
    std::string positions = listText(llvm::to_vector(llvm::seq<int64_t>(0, last)));
    if (random.flip())
      squash(multiply(outputsFirst ? grad : x, outputsFirst ? x : grad, positions + " x " + positions, weight.shape));
    if (random.integer(0, 7) == 0)
      values.push_back(grad);
  }

  /// The sum of enough rows for several blocks, of something computed for it.
  void columnSum() {
    Value x = pickFloat();
    if (x.shape.size() > 1 || x.shape == Shape{})
      x = table({random.pick({1, 3, 5})});
    int64_t rows = random.pick({16, 18, 24}), width = x.shape[0];
    if (rows * width > kMaxElements)
      return;
    Shape shape = random.flip() ? Shape{rows, width} : Shape{2, rows / 2, width};
    int64_t last = shape.size() - 1;
    Value wide = repeated(x, {last}, shape), factors = table(shape);
    Value product = emit(shape, "f32", formatv("arith.mulf {0}, {1} : {2}", wide.name, factors.name, factors.type()));
    Value value = random.flip() ? squash(product) : product;
    squash(
        emit({width}, "f32",
             formatv("graph.reduce sum {0} dims {1} : ({2}) -> {3}", value.name,
                     listText(llvm::to_vector(llvm::seq<int64_t>(0, last))), value.type(), typeText({width}, "f32"))));
  }

  void norm() {
    Value x = pickFloat();
    if (x.shape.empty())
      return;
    Value scale = ofShape({x.shape.back()});
    emit(x.shape, "f32",
         formatv("graph.rms_norm {0}, {1} eps 1.0e-2 : ({2}, {3}) -> {2}", x.name, scale.name, x.type(), scale.type()));
  }

  /// Rows of a table in order, gathered or scattered.
  void rows() {
    Value x = pickFloat();
    if (x.shape.empty())
      return;
    Value index = emit({x.shape[0]}, "i32", formatv("graph.iota dim 0 : {0}", typeText({x.shape[0]}, "i32")));
    if (random.flip()) {
      emit(x.shape, "f32",
           formatv("graph.gather {0}[{1}] : ({2}, {3}) -> {2}", x.name, index.name, x.type(), index.type()));
      return;
    }
    Shape shape = x.shape;
    shape[0] += 1;
    emit(shape, "f32",
         formatv("graph.scatter_add {0} at {1} : ({2}, {3}) -> {4}", x.name, index.name, x.type(), index.type(),
                 typeText(shape, "f32")));
  }

  /// A comparison of integers that chooses between floating-point values.
  void integers() {
    Value x = pickFloat(), y = ofShape(x.shape);
    if (x.shape.empty())
      return;
    Value index =
        emit(x.shape, "i32", formatv("graph.iota dim {0} : {1}", x.shape.size() - 1, typeText(x.shape, "i32")));
    Value limit = emit(x.shape, "i32", formatv("arith.constant dense<{0}> : {1}", random.integer(0, 3), index.type()));
    Value sum = emit(x.shape, "i32", formatv("arith.addi {0}, {1} : {2}", index.name, limit.name, index.type()));
    Value less = emit(
        x.shape, "i1",
        formatv("arith.cmpi slt, {0}, {1} : {2}", random.flip() ? sum.name : index.name, limit.name, index.type()));
    emit(x.shape, "f32",
         formatv("arith.select {0}, {1}, {2} : {3}, {4}", less.name, x.name, y.name, less.type(), x.type()));
  }

  Random &random;
  const std::vector<Variable> &variables;
  std::vector<Value> values;
  int64_t next = 0;
};

} // namespace

std::string bowline::test::randomProgram(Random &random) {
  const std::vector<Shape> shapes = {{}, {3}, {2, 3}, {4, 2, 3}, {1, 5}};
  auto pickShape = [&] { return shapes[random.integer(0, shapes.size() - 1)]; };
  std::vector<Variable> variables;
  std::string text;
  for (int64_t i = random.integer(2, 4); i > 0; --i) {
    variables.push_back({"p" + std::to_string(i), pickShape(), false});
    text += formatv("graph.param @{0} : {1} init(#graph.fill<0.0>) key(\"{0}\")\n", variables.back().name,
                    variables.back().type());
  }
  for (int64_t i = random.integer(1, 3); i > 0; --i) {
    variables.push_back({"s" + std::to_string(i), pickShape(), false});
    text += formatv("graph.state @{0} saved : {1} init(#graph.fill<0.0>)\n", variables.back().name,
                    variables.back().type());
  }
  for (int64_t i = random.integer(1, 3); i > 0; --i) {
    variables.push_back({"acc" + std::to_string(i), pickShape(), true});
    text += formatv("graph.state @{0} accumulator : {1} init(#graph.fill<0.0>)\n", variables.back().name,
                    variables.back().type());
  }

  auto function = [&](const std::string &name, int64_t arguments, bool isFirst, bool returns) {
    FunctionWriter writer(random, variables);
    std::vector<std::string> parameters, resultTypes, results;
    for (int64_t i = 0; i < arguments; ++i) {
      Value argument{formatv("%{0}{1}", name, i), "f32", pickShape()};
      parameters.push_back(formatv("{0}: {1} {{graph.name = \"{2}{3}\"}", argument.name, argument.type(), name, i));
      writer.addArgument(argument);
    }
    if (isFirst) {
      writer.randomOperations(random.integer(0, 5), false);
      for (const Variable &variable : variables)
        if (variable.isAccumulator)
          writer.write(variable);
    }
    writer.randomOperations(random.integer(1, 24), true);
    std::string returned = "  graph.return\n";
    if (returns) {
      writer.read(writer.pickVariable(true));
      for (int64_t i = random.integer(0, 4); i > 0; --i) {
        Value value = writer.pickAny();
        results.push_back(value.name);
        resultTypes.push_back(value.type());
        if (random.integer(0, 3) == 0)
          writer.randomOperations(3, true);
      }
      if (!results.empty())
        returned = "  graph.return " + llvm::join(results, ", ") + " : " + llvm::join(resultTypes, ", ") + "\n";
    }
    text += "graph.func @" + name + "(" + llvm::join(parameters, ", ") + ") -> (" + llvm::join(resultTypes, ", ") +
            ") {\n" + writer.body + returned + "}\n";
  };
  function("begin", random.integer(0, 1), true, false);
  function("again", random.integer(0, 2), false, false);
  function("finish", random.integer(0, 1), false, true);
  text += formatv("graph.entry @run [@begin, @again, @finish] repeat [1, {0}, 1]\n", random.integer(1, 3));
  return text;
}
