//===- OpCases.cpp - Every operation on random shapes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Execution/OpCases.h"

#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace bowline;
using namespace bowline::test;
using llvm::formatv;

static constexpr int kRounds = 4;
static constexpr double kUlp = 0x1p-23; // of f32 at 1

static std::string list(llvm::ArrayRef<int64_t> values) {
  std::string text = "[";
  for (auto [i, value] : llvm::enumerate(values))
    text += (i ? ", " : "") + std::to_string(value);
  return text + "]";
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

namespace {
struct Unary {
  const char *name;
  double low, high;
  Bound bound;
};
} // namespace

static void addFloatCases(Random &random, std::vector<Case> &cases) {
  // Rounded once: half a unit in the last place.
  const Bound exact{kUlp / 2, 0};
  for (const char *op : {"arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf", "arith.minimumf"}) {
    Shape shape = pickShape(random, random.integer(0, 3));
    std::string type = tensorType(shape);
    // A quotient of numbers near zero would overflow.
    Argument lhs{shape}, rhs{shape};
    if (llvm::StringRef(op).ends_with("divf"))
      rhs.low = 0.1;
    cases.push_back({op, {lhs, rhs}, {type}, formatv("%r = {0} %0, %1 : {1}", op, type), exact});
  }
  const std::vector<Unary> unary = {{"arith.negf", -2, 2, exact},
                                    {"math.absf", -2, 2, exact},
                                    {"math.sqrt", 0, 9, {kUlp, 0}},
                                    {"math.rsqrt", 0.01, 9, {4 * kUlp, 0}},
                                    {"math.exp", -20, 20, {4 * kUlp, 0}},
                                    {"math.log", 0.01, 9, {4 * kUlp, 2 * kUlp}},
                                    {"math.erf", -4, 4, {4 * kUlp, 2 * kUlp}},
                                    {"math.tanh", -9, 9, {4 * kUlp, 2 * kUlp}},
                                    {"math.sin", -30, 30, {4 * kUlp, 4 * kUlp}},
                                    {"math.cos", -30, 30, {4 * kUlp, 4 * kUlp}},
                                    {"graph.logistic", -20, 20, {8 * kUlp, 0}},
                                    {"graph.silu", -20, 20, {8 * kUlp, 0}},
                                    {"graph.gelu erf", -6, 6, {8 * kUlp, 8 * kUlp}},
                                    {"graph.gelu tanh", -6, 6, {8 * kUlp, 8 * kUlp}}};
  for (const Unary &op : unary) {
    Shape shape = pickShape(random, random.integer(0, 3));
    std::string type = tensorType(shape);
    cases.push_back(
        {op.name, {{shape, "f32", op.low, op.high}}, {type}, formatv("%r = {0} %0 : {1}", op.name, type), op.bound});
  }
  Shape shape = pickShape(random, 2);
  std::string type = tensorType(shape);
  // Half a unit each for 1 / 30 and the product with it, 2.5 for tanh, and half a unit for the product with 30.
  cases.push_back({"graph.softcap",
                   {{shape, "f32", -200, 200}},
                   {type},
                   formatv("%r = graph.softcap %0 cap 30.0 : {0}", type),
                   {4 * kUlp, 0}});
  cases.push_back({"math.powf",
                   {{shape, "f32", 0.1, 3}, {shape, "f32", -3, 3}},
                   {type},
                   formatv("%r = math.powf %0, %1 : {0}", type),
                   {16 * kUlp, 0}});
}

static void addIntegerCases(Random &random, std::vector<Case> &cases) {
  const Bound equal{0, 0};
  for (const char *op : {"arith.addi", "arith.subi", "arith.muli"}) {
    Shape shape = pickShape(random, random.integer(0, 3));
    std::string type = tensorType(shape, "i32");
    Argument argument{shape, "i32", INT32_MIN, INT32_MAX};
    cases.push_back({op, {argument, argument}, {type}, formatv("%r = {0} %0, %1 : {1}", op, type), equal});
  }
  // Few values, so that many pairs are equal. Selecting numbers by the condition leaves the condition inside.
  for (const char *predicate : {"eq", "ne", "slt", "sle", "sgt", "sge"}) {
    Shape shape = pickShape(random, random.integer(1, 3));
    std::string type = tensorType(shape, "i32"), condition = tensorType(shape, "i1");
    Argument argument{shape, "i32", -2, 2};
    cases.push_back({std::string("arith.cmpi ") + predicate,
                     {argument, argument},
                     {type},
                     formatv("%c = arith.cmpi {0}, %0, %1 : {1}\n%r = arith.select %c, %0, %1 : {2}, {1}", predicate,
                             type, condition),
                     equal});
  }
  for (const char *predicate :
       {"oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"}) {
    Shape shape = pickShape(random, random.integer(1, 3));
    std::string type = tensorType(shape, "i32"), real = tensorType(shape), condition = tensorType(shape, "i1");
    Argument argument{shape, "i32", -2, 2};
    cases.push_back({std::string("arith.cmpf ") + predicate,
                     {argument, argument},
                     {real},
                     formatv("%a = arith.sitofp %0 : {1} to {2}\n%b = arith.sitofp %1 : {1} to {2}\n"
                             "%c = arith.cmpf {0}, %a, %b : {2}\n%r = arith.uitofp %c : {3} to {2}",
                             predicate, type, real, condition),
                     equal});
  }
  for (int round = 0; round < kRounds; ++round) {
    Shape shape = pickShape(random, random.integer(0, 3));
    std::string real = tensorType(shape), wide = tensorType(shape, "f64"), whole = tensorType(shape, "i32");
    cases.push_back({"conversions",
                     {{shape, "f32", -1000, 1000}},
                     {real, whole},
                     formatv("%w = arith.extf %0 : {0} to {1}\n%p = arith.mulf %w, %w : {1}\n"
                             "%r0 = arith.truncf %p : {1} to {0}\n%r1 = arith.fptosi %0 : {0} to {2}",
                             real, wide, whole),
                     {kUlp / 2, 0}});
    cases.push_back({"constants",
                     {{shape}},
                     {real, whole, real},
                     formatv("%r0 = arith.constant dense<-1.5> : {0}\n%r1 = arith.constant dense<-7> : {1}\n"
                             "%s = arith.constant dense<0.25> : {0}\n%r2 = arith.mulf %0, %s : {0}",
                             real, whole),
                     equal});
  }
}

std::vector<Case> test::elementwiseCases(Random &random) {
  std::vector<Case> cases;
  for (int round = 0; round < kRounds; ++round)
    addFloatCases(random, cases);
  addIntegerCases(random, cases);
  return cases;
}

//===----------------------------------------------------------------------===//
// Shapes, indices and generation
//===----------------------------------------------------------------------===//

static void addRearrangements(Random &random, std::vector<Case> &cases) {
  const Bound equal{0, 0};
  auto add = [&](const std::string &name, std::vector<Argument> arguments, const Shape &result, const std::string &op) {
    std::string operands, types;
    for (size_t k = 0; k < arguments.size(); ++k)
      types += (k ? ", " : "") + arguments[k].type();
    cases.push_back({name,
                     arguments,
                     {tensorType(result, arguments[0].element)},
                     formatv("%r = graph.{0} : ({1}) -> {2}", op, types, tensorType(result, arguments[0].element)),
                     equal});
  };
  int64_t rank = random.integer(1, 4);
  Shape shape = pickShape(random, rank);
  auto argument = [&](const Shape &of) { return random.flip() ? Argument{of} : Argument{of, "i32", -1000, 1000}; };

  auto perm = random.permutation(rank);
  Shape permuted;
  for (int64_t dim : perm)
    permuted.push_back(shape[dim]);
  add("transpose", {argument(shape)}, permuted, "transpose %0 perm " + list(perm));

  Shape flat{HostTensor(shape).count()};
  add("reshape", {argument(shape)}, flat, "reshape %0");
  add("reshape", {argument(flat)}, shape, "reshape %0");

  llvm::SmallVector<int64_t> offsets, low, high;
  Shape box, padded;
  for (int64_t size : shape) {
    offsets.push_back(random.integer(0, size - 1));
    box.push_back(random.integer(1, size - offsets.back()));
    low.push_back(random.integer(0, 3));
    high.push_back(random.integer(0, 3));
    padded.push_back(low.back() + size + high.back());
  }
  add("slice", {argument(shape)}, box, "slice %0 at " + list(offsets) + " sizes " + list(box));
  add("pad", {argument(shape)}, padded, "pad %0 low " + list(low) + " high " + list(high));

  int64_t dim = random.integer(0, rank - 1);
  Shape second = shape, third = shape, joined = shape;
  second[dim] = pickSize(random), third[dim] = 1;
  joined[dim] += second[dim] + 1;
  add("concat", {{shape}, {second}, {third}}, joined, "concat %0, %1, %2 dim " + std::to_string(dim));

  auto kept = random.selection(rank);
  Shape smaller;
  for (int64_t one : kept)
    smaller.push_back(shape[one]);
  add("broadcast", {argument(smaller)}, shape, "broadcast %0 dims " + list(kept));
}

/// A part of a tensor that is sharded along some dimensions; arguments say which part.
static Case partOfRandom(Random &random) {
  Shape part = pickShape(random, random.integer(1, 3)), whole = part;
  llvm::SmallVector<int64_t> cut = random.selection(static_cast<int64_t>(part.size()));
  if (cut.empty())
    cut.push_back(0);
  std::vector<Argument> places;
  std::string names;
  for (int64_t dim : cut) {
    int64_t parts = random.integer(1, 4);
    whole[dim] = part[dim] * parts - random.integer(0, part[dim] - 1); // the last part may go beyond the end
    names += formatv("{0}%{1}", names.empty() ? "" : ", ", places.size());
    places.push_back({{}, "i32", 0, static_cast<double>(parts - 1)});
  }
  return {"random part",
          places,
          {tensorType(part)},
          formatv("%r = graph.random normal(0.5) seed({0}) stream({1}) shard {2} along {3} of {4} : {5}",
                  random.integer(0, 1 << 30), random.integer(0, 100), names, list(cut), list(whole), tensorType(part)),
          {8 * kUlp, 8 * kUlp}};
}

static void addIndexing(Random &random, std::vector<Case> &cases) {
  const Bound equal{0, 0};
  Shape row = pickShape(random, random.integer(0, 2)), at = pickShape(random, random.integer(1, 2));
  while (HostTensor(row).count() * HostTensor(at).count() > 20000)
    at = pickShape(random, 1), row = pickShape(random, 1);
  int64_t rows = pickSize(random);
  Shape table = row, taken = at;
  table.insert(table.begin(), rows);
  taken.insert(taken.end(), row.begin(), row.end());
  Argument indices{at, "i32", 0, static_cast<double>(rows - 1)};
  cases.push_back(
      {"gather",
       {{table}, indices},
       {tensorType(taken)},
       formatv("%r = graph.gather %0[%1] : ({0}, {1}) -> {2}", tensorType(table), indices.type(), tensorType(taken)),
       equal});
  cases.push_back({"gather of integers",
                   {{table, "i32", -1000, 1000}, indices},
                   {tensorType(taken, "i32")},
                   formatv("%r = graph.gather %0[%1] : ({0}, {1}) -> {2}", tensorType(table, "i32"), indices.type(),
                           tensorType(taken, "i32")),
                   equal});
  // At most as many terms as indices, each of at most 2.
  double count = static_cast<double>(HostTensor(at).count());
  cases.push_back({"scatter_add",
                   {{taken}, indices},
                   {tensorType(table)},
                   formatv("%r = graph.scatter_add %0 at %1 : ({0}, {1}) -> {2}", tensorType(taken), indices.type(),
                           tensorType(table)),
                   {0, kUlp * 2 * count}});
  Shape shape = pickShape(random, random.integer(1, 3));
  int64_t dim = random.integer(0, static_cast<int64_t>(shape.size()) - 1);
  cases.push_back({"iota",
                   {},
                   {tensorType(shape, "i32")},
                   formatv("%r = graph.iota dim {0} : {1}", dim, tensorType(shape, "i32")),
                   equal});
  // Logarithm, root and cosine in f32, of numbers below 2^32.
  cases.push_back({"random",
                   {},
                   {tensorType(shape)},
                   formatv("%r = graph.random normal(0.5) seed({0}) stream({1}) : {2}", random.integer(0, 1 << 30),
                           random.integer(0, 100), tensorType(shape)),
                   {8 * kUlp, 8 * kUlp}});
  cases.push_back(partOfRandom(random));
}

std::vector<Case> test::shapeCases(Random &random) {
  std::vector<Case> cases;
  for (int round = 0; round < 2 * kRounds; ++round) {
    addRearrangements(random, cases);
    addIndexing(random, cases);
  }
  return cases;
}

//===----------------------------------------------------------------------===//
// Contractions and reductions
//===----------------------------------------------------------------------===//

/// Any order of batch, free and contracted dimensions on both sides: most need transposes before a matrix product.
static Case dotCase(Random &random) {
  enum Kind { Batch, LhsFree, RhsFree, Contracted };
  std::vector<int64_t> sizes;
  std::vector<Kind> kinds;
  auto more = [&](Kind kind, int64_t most) {
    for (int64_t count = random.integer(0, most); count > 0; --count) {
      kinds.push_back(kind);
      sizes.push_back(random.pick({1, 2, 3, 5, 8, 13, 17}));
    }
  };
  do {
    kinds.clear(), sizes.clear();
    more(Batch, 2), more(LhsFree, 2), more(RhsFree, 2), more(Contracted, 2);
  } while (HostTensor(sizes).count() > 30000);

  // Dimensions of a side in any order; the lists of pairs in any order too, the same on both sides.
  auto order = random.permutation(kinds.size());
  auto lhsOrder = random.permutation(kinds.size()), rhsOrder = random.permutation(kinds.size());
  Shape lhs, rhs, result, lhsFreeSizes, rhsFreeSizes;
  std::vector<int64_t> lhsAt(kinds.size(), -1), rhsAt(kinds.size(), -1);
  for (int64_t dim : lhsOrder)
    if (kinds[dim] != RhsFree) {
      lhsAt[dim] = static_cast<int64_t>(lhs.size());
      lhs.push_back(sizes[dim]);
      if (kinds[dim] == LhsFree)
        lhsFreeSizes.push_back(sizes[dim]);
    }
  for (int64_t dim : rhsOrder)
    if (kinds[dim] != LhsFree) {
      rhsAt[dim] = static_cast<int64_t>(rhs.size());
      rhs.push_back(sizes[dim]);
      if (kinds[dim] == RhsFree)
        rhsFreeSizes.push_back(sizes[dim]);
    }
  std::vector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
  int64_t terms = 1;
  for (int64_t dim : order) {
    if (kinds[dim] == Batch) {
      lhsBatch.push_back(lhsAt[dim]), rhsBatch.push_back(rhsAt[dim]);
      result.push_back(sizes[dim]);
    } else if (kinds[dim] == Contracted) {
      lhsContract.push_back(lhsAt[dim]), rhsContract.push_back(rhsAt[dim]);
      terms *= sizes[dim];
    }
  }
  result.insert(result.end(), lhsFreeSizes.begin(), lhsFreeSizes.end());
  result.insert(result.end(), rhsFreeSizes.begin(), rhsFreeSizes.end());
  std::string pairs;
  if (!lhsBatch.empty())
    pairs += " batch " + list(lhsBatch) + " x " + list(rhsBatch);
  if (!lhsContract.empty())
    pairs += " contract " + list(lhsContract) + " x " + list(rhsContract);
  return {"dot_general",
          {{lhs}, {rhs}},
          {tensorType(result)},
          formatv("%r = graph.dot_general %0, %1{0} : ({1}, {2}) -> {3}", pairs, tensorType(lhs), tensorType(rhs),
                  tensorType(result)),
          // A sum of `terms` products of at most 4.
          {kUlp, kUlp * 4 * static_cast<double>(terms)}};
}

std::vector<Case> test::contractionCases(Random &random) {
  std::vector<Case> cases;
  for (int round = 0; round < 40; ++round)
    cases.push_back(dotCase(random));
  for (int round = 0; round < 20; ++round) {
    int64_t rank = random.integer(1, 4);
    Shape shape = pickShape(random, rank), kept;
    auto dims = random.selection(rank);
    for (int64_t dim = 0; dim < rank; ++dim)
      if (!llvm::is_contained(dims, dim))
        kept.push_back(shape[dim]);
    double terms = static_cast<double>(HostTensor(shape).count() / HostTensor(kept).count());
    for (const char *kind : {"sum", "max"})
      cases.push_back({"reduce",
                       {{shape}},
                       {tensorType(kept)},
                       formatv("%r = graph.reduce {0} %0 dims {1} : ({2}) -> {3}", kind, list(dims), tensorType(shape),
                               tensorType(kept)),
                       {kUlp, kind[0] == 'm' ? 0 : kUlp * 2 * terms}});
  }
  return cases;
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

static void addNorms(Random &random, std::vector<Case> &cases) {
  Shape shape = pickShape(random, random.integer(1, 3)), last{shape.back()};
  std::string type = tensorType(shape), row = tensorType(last);
  cases.push_back({"rms_norm",
                   {{shape}, {last}},
                   {type},
                   formatv("%r = graph.rms_norm %0, %1 eps 1.0e-02 : ({0}, {1}) -> {0}", type, row),
                   {1e-6, 2e-6}});
  cases.push_back({"layer_norm",
                   {{shape}, {last}, {last}},
                   {type},
                   formatv("%r = graph.layer_norm %0, %1, %2 eps 1.0e-02 : ({0}, {1}, {1}) -> {0}", type, row),
                   // The difference from the mean is exact to a unit of the inputs, and the eps may magnify it tenfold.
                   {2e-6, 1e-5}});
}

static void addRope(Random &random, std::vector<Case> &cases) {
  int64_t batch = random.integer(1, 2), seq = random.pick({1, 2, 7, 16, 17}), heads = random.pick({1, 3, 4}),
          half = random.pick({1, 3, 5, 8, 16, 17});
  Shape shape{batch, seq, heads, 2 * half}, table{seq, half}, positions{seq};
  std::string type = tensorType(shape), angles = tensorType(table), where = tensorType(positions, "i32");
  cases.push_back({"rope_angles",
                   {{positions, "i32", -1000, 5000}},
                   {angles, angles},
                   formatv("%r0, %r1 = graph.rope_angles %0 theta 10000.0 : ({0}) -> ({1}, {1})", where, angles),
                   {0, 4 * kUlp}});
  for (const char *scaling : {"factor 4.0", "factor 8.0 original 512 low 1.0 high 4.0"})
    cases.push_back({"rope_angles_scaled",
                     {{positions, "i32", -1000, 5000}},
                     {angles, angles},
                     formatv("%r0, %r1 = graph.rope_angles %0 theta 500.0 scaled <{2}> : ({0}) -> ({1}, {1})", where,
                             angles, scaling),
                     {0, 4 * kUlp}});
  for (const char *direction : {"", "inverse "})
    cases.push_back({"rope",
                     {{shape}, {table, "f32", -1, 1}, {table, "f32", -1, 1}},
                     {type},
                     formatv("%r = graph.rope {2}%0, %1, %2 : ({0}, {1}, {1}) -> {0}", type, angles, direction),
                     {0, 4 * kUlp}});
}

static void addAttention(Random &random, std::vector<Case> &cases) {
  bool causal = random.flip();
  int64_t batch = random.integer(1, 2), queries = random.pick({1, 2, 7, 16, 31, 65}), keyHeads = random.integer(1, 3),
          heads = keyHeads * random.integer(1, 3), width = random.pick({1, 3, 8, 10, 16, 17});
  int64_t keys = causal ? queries + random.pick({0, 0, 1, 5}) : random.pick({1, 2, 7, 16, 33, 70});
  Shape q{batch, queries, heads, width}, k{batch, keys, keyHeads, width}, rows{batch, heads, queries};
  std::string query = tensorType(q), key = tensorType(k), row = tensorType(rows);
  std::string word = causal ? "causal " : "";
  if (causal && random.flip())
    word += formatv("window {0} ", random.pick({1, 2, 5, 16, 40, 100}));
  std::string forward = formatv("%r0, %r1 = graph.attention {0}%0, %1, %2 scale 0.375 : ({1}, {2}, {2}) -> ({1}, {3})",
                                word, query, key, row);
  // Scores of up to 0.375 * 4 * 17, where a unit in the last place is about 2e-6.
  cases.push_back({"attention", {{q}, {k}, {k}}, {query, row}, forward, {1e-5, 1e-5}});
  cases.push_back({"attention_grad",
                   {{q}, {k}, {k}, {q}},
                   {query, key, key},
                   formatv("%o, %l = graph.attention {0}%0, %1, %2 scale 0.375 : ({1}, {2}, {2}) -> ({1}, {3})\n"
                           "%r0, %r1, %r2 = graph.attention_grad {0}%0, %1, %2, %o, %l, %3 scale 0.375 : "
                           "({1}, {2}, {2}, {1}, {3}, {1}) -> ({1}, {2}, {2})",
                           word, query, key, row),
                   {1e-5, 1e-4}});
}

/// An attention step of a served model over a cache of its own: it writes rows, and attends to older rows and to these
/// rows. `format` is the format of a cache of bytes, or empty.
static void addPagedAttention(Random &random, llvm::StringRef format, std::vector<Case> &cases) {
  int64_t keyHeads = random.integer(1, 3), heads = keyHeads * random.integer(1, 3),
          width = random.pick({1, 3, 8, 16, 17});
  SequenceSizes sizes{.sequences = random.integer(1, 6),
                      .listed = random.integer(1, 5),
                      .tokens = random.pick({1, 2, 7, 16, 33}),
                      .block_tokens = random.pick({1, 3, 4, 16}),
                      .block_count = 0};
  sizes.block_count = 1 + sizes.sequences * sizes.listed + random.integer(0, 3);
  Shape q{sizes.tokens, heads, width}, k{sizes.tokens, keyHeads, width};
  Argument rows{{sizes.sequences + 1}, "i32"}, lengths{{sizes.sequences}, "i32"},
      blocks{{sizes.sequences, sizes.listed}, "i32"}, positions{{sizes.tokens}, "i32"};
  Argument bytes{{sizes.block_count, sizes.block_tokens, keyHeads, 4 + width}, "ui8"};
  std::string query = tensorType(q), key = tensorType(k),
              cache =
                  format.empty() ? tensorType({sizes.block_count, sizes.block_tokens, keyHeads, width}) : bytes.type(),
              in = format.empty() ? "" : formatv(" format \"{0}\"", format).str(),
              at = formatv("{0}, {1}, {2}", rows.type(), lengths.type(), blocks.type());
  std::string variables, body;
  for (const char *what : {"keys", "values"}) {
    std::string name = formatv("{0}{1}", what, cases.size());
    variables += formatv("graph.state @{0} cache : {1} init(#graph.fill<0.0>)\n", name, cache);
    body += formatv("%{0} = graph.read @{1} : {2}\n"
                    "%new_{0} = graph.cache_write %{0}, {3} at %3, %4, %5{6} : ({2}, {4}, {5}) -> {2}\n"
                    "graph.write @{1}, %new_{0} : {2}\n",
                    what, name, cache, what[0] == 'k' ? "%1" : "%2", key, at, in);
  }
  std::string window = random.flip() ? formatv("window {0} ", random.pick({1, 2, 5, 16})).str() : "";
  body += formatv("%r0 = graph.paged_attention {0}%0, %new_keys, %new_values at %3, %4, %5 scale 0.375{7} : "
                  "({1}, {2}, {2}, {3}) -> {1}\n"
                  "%r1 = graph.sequence_positions %3, %4 : ({4}, {5}) -> {6}\n",
                  window, query, cache, at, rows.type(), lengths.type(), positions.type(), in);
  Case made{"paged_attention",
            {{q}, {k}, {k}, rows, lengths, blocks},
            {query, positions.type()},
            body,
            {1e-5, 1e-5},
            variables,
            sizes};
  if (format.empty()) { // as attention's: scores of up to 0.375 * 4 * 17; caches hold what they are given
    made.body += formatv("%r2 = arith.negf %new_keys : {0}", cache);
    made.results.push_back(cache);
  } else {
    // Numbers up to 2 are off by half a scale of 2 / 127 in the kernel alone, a score by 0.375 * 2 * width times that,
    // and with scores that are off by e a mean of numbers up to 2 by 2 (exp(2 e) - 1).
    double half = 1 / 127.0, score = 0.375 * 2 * static_cast<double>(width) * half;
    made.name += "_int8";
    made.bound = {1e-5, 1e-5 + half + 2 * std::expm1(2 * score)};
  }
  cases.push_back(std::move(made));
}

/// Weights in blocks of bits, whose bytes are scales that are numbers.
static void addQuantized(Random &random, std::vector<Case> &cases) {
  const struct {
    const char *name;
    int64_t elements, bytes;
    double largest; ///< of such bytes
  } formats[] = {{"q8_0", 32, 34, 54},
                 {"q4_0", 32, 18, 8},
                 {"q4_1", 32, 20, 15},
                 {"q4_k", 256, 144, 860},
                 {"q6_k", 256, 210, 1700}};
  for (const auto &format : formats) {
    int64_t rows = random.pick({1, 2, 8, 9, 33}), columns = random.pick({1, 3, 17, 40}), blocks = random.integer(1, 3);
    int64_t width = blocks * format.elements;
    Argument matrix{{columns, blocks, format.bytes}, "ui8", 0, 59},
        ids{{rows}, "i32", 0, static_cast<double>(columns - 1)};
    std::string x = tensorType({rows, width}), y = tensorType({rows, columns});
    // A sum of products of numbers up to 2 and up to the format's largest; the former may be rounded to 16 bits.
    double each = 2 * format.largest * (kUlp * static_cast<double>(width) + 1 / 65534.0);
    cases.push_back({"quantized_dot",
                     {{{rows, width}}, matrix},
                     {y},
                     formatv("%r = graph.quantized_dot %0, %1 format \"{0}\" : ({1}, {2}) -> {3}", format.name, x,
                             matrix.type(), y),
                     {0, each * static_cast<double>(width)}});
    cases.push_back({"quantized_gather",
                     {matrix, ids},
                     {x},
                     formatv("%r = graph.quantized_gather %0[%1] format \"{0}\" : ({1}, {2}) -> {3}", format.name,
                             matrix.type(), ids.type(), x),
                     {kUlp, 0}});
  }
}

static void addGrouped(Random &random, std::vector<Case> &cases) {
  int64_t rows = random.pick({1, 2, 7, 40}), groups = random.integer(1, 5), k = random.pick({1, 3, 16, 33}),
          columns = random.pick({1, 2, 17, 40});
  Argument offsets{{random.integer(2, groups + 1)}, "i32", 0, static_cast<double>(rows), /*ascends=*/true};
  bool transposed = random.flip();
  Shape x{rows, k}, m = transposed ? Shape{groups, columns, k} : Shape{groups, k, columns}, y{rows, columns};
  // A sum of k products of numbers up to 2, and of as many as there are rows.
  double eachOfK = kUlp * 4 * static_cast<double>(k), eachRow = kUlp * 4 * static_cast<double>(rows);
  cases.push_back(
      {"grouped_dot",
       {{x}, {m}, offsets},
       {tensorType(y)},
       formatv("%r = graph.grouped_dot {0}%0, %1 at %2 : ({1}, {2}, {3}) -> {4}", transposed ? "transposed " : "",
               tensorType(x), tensorType(m), offsets.type(), tensorType(y)),
       {0, eachOfK * static_cast<double>(k)}});
  Shape sums{groups, k, columns};
  cases.push_back({"grouped_outer",
                   {{x}, {y}, offsets},
                   {tensorType(sums)},
                   formatv("%r = graph.grouped_outer %0, %1 at %2 : ({0}, {1}, {2}) -> {3}", tensorType(x),
                           tensorType(y), offsets.type(), tensorType(sums)),
                   {0, eachRow * static_cast<double>(rows)}});
}

static void addValidRows(Random &random, std::vector<Case> &cases) {
  Shape shape = pickShape(random, random.integer(1, 3));
  Argument count{{random.integer(1, 4)}, "i32", -3, static_cast<double>(shape[0] + 3)};
  // Zeros, and numbers that are as they were.
  cases.push_back({"valid_rows",
                   {{shape}, count},
                   {tensorType(shape)},
                   formatv("%r = graph.valid_rows %0 of %1 : ({0}, {1}) -> {0}", tensorType(shape), count.type()),
                   {0, 0}});
}

static void addLoss(Random &random, std::vector<Case> &cases) {
  Shape positions = pickShape(random, random.integer(1, 2));
  while (HostTensor(positions).count() > 300)
    positions = pickShape(random, 1);
  int64_t classes = pickSize(random);
  Shape shape = positions;
  shape.push_back(classes);
  Argument labels{positions, "i32", -1, static_cast<double>(classes)}; // absent to elsewhere
  std::string logits = tensorType(shape), rows = tensorType(positions);
  cases.push_back(
      {"softmax_cross_entropy",
       {{shape, "f32", -20, 20}, labels},
       {rows, rows},
       formatv("%r0, %r1 = graph.softmax_cross_entropy %0, %1 : ({0}, {1}) -> ({2}, {2})", logits, labels.type(), rows),
       {4 * kUlp, 40 * kUlp}});
  cases.push_back({"softmax_cross_entropy_grad",
                   {{shape, "f32", -20, 20}, labels, {positions}},
                   {logits},
                   formatv("%loss, %lse = graph.softmax_cross_entropy %0, %1 : ({0}, {1}) -> ({2}, {2})\n"
                           "%r = graph.softmax_cross_entropy_grad %0, %1, %lse, %2 : ({0}, {1}, {2}, {2}) -> {0}",
                           logits, labels.type(), rows),
                   {80 * kUlp, 80 * kUlp}});
}

std::vector<Case> test::layerCases(Random &random) {
  std::vector<Case> cases;
  for (int round = 0; round < 2 * kRounds; ++round) {
    addNorms(random, cases);
    addRope(random, cases);
    addAttention(random, cases);
    addPagedAttention(random, "", cases);
    addPagedAttention(random, "int8", cases);
    addQuantized(random, cases);
    addGrouped(random, cases);
    addValidRows(random, cases);
    addLoss(random, cases);
  }
  return cases;
}
