#include "test/Unit/Train/toy_plan.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <utility>

#include "runtime/plan/plan_writer.h"
#include "test/Unit/Runtime/session_tensors.h"
#include "test/Unit/Train/plan_builder.h"

namespace bowline {
namespace {

using fbs::BufferKind;
using fbs::DType;
using kernels::Access;
using kernels::Attribute;

Attribute Int(const std::string& name, int64_t value) { return {name, {value}, {}, ""}; }
Attribute Ints(const std::string& name, std::vector<int64_t> values) { return {name, std::move(values), {}, ""}; }
Attribute Float(const std::string& name, double value) { return {name, {}, {value}, ""}; }

using Shape = std::vector<int64_t>;

// The launches that the model is made of.
class ToyBuilder : public PlanBuilder {
 public:
  using PlanBuilder::PlanBuilder;

  uint32_t Cache() { return State(kToyCacheKey, fbs::StateFlag::PerRequest, DType::F32, {2}); }
  void Fill(uint32_t out, const Shape& shape, double value) {
    Launch("fill", {Float("value", value)}, {{out, Access::kWrite, shape}});
  }
  void Normal(uint32_t out, const Shape& shape, int64_t seed, int64_t key) {
    Launch("random_normal",
           {Int("seed", seed), Int("key", key), Float("mean", 0), Float("stddev", 0.5), Ints("global_shape", shape),
            Ints("offsets", Shape(shape.size(), 0))},
           {{out, Access::kWrite, shape}});
  }
  void Gather(uint32_t table, const Shape& table_shape, uint32_t ids, const Shape& ids_shape, uint32_t out) {
    Launch("gather_rows", {{"in_range", {1}, {}, ""}},
           {{table, Access::kRead, table_shape},
            {ids, Access::kRead, ids_shape},
            {out, Access::kWrite, Join(ids_shape, table_shape)}});
  }
  void ScatterAdd(uint32_t updates, uint32_t ids, const Shape& ids_shape, uint32_t out, const Shape& out_shape) {
    Launch("scatter_add_rows", {},
           {{updates, Access::kRead, Join(ids_shape, out_shape)},
            {ids, Access::kRead, ids_shape},
            {out, Access::kWrite, out_shape}});
  }
  // c[b] (+)= a[b] . x[b] of length k; or c[m] (+)= a[m] x with k = 1.
  void Dot(uint32_t a, uint32_t x, uint32_t c, int64_t batch, int64_t m, int64_t k, bool accumulate) {
    Launch("matmul",
           {Int("batch", batch), Int("m", m), Int("n", 1), Int("k", k), Ints("a_strides", {m * k, k, 1}),
            Ints("b_strides", {k, 1, 1}), Ints("c_strides", {m, 1, 1}), Int("accumulate", accumulate ? 1 : 0)},
           {{a, Access::kRead, {batch * m * k}},
            {x, Access::kRead, {batch * k}},
            {c, accumulate ? Access::kReadWrite : Access::kWrite, {batch * m}}});
  }

 private:
  static Shape Join(Shape ids, const Shape& table) {
    ids.insert(ids.end(), table.begin() + 1, table.end());
    return ids;
  }
};

std::vector<float> Repeated(int64_t count, double value) {
  return std::vector<float>(static_cast<size_t>(count), static_cast<float>(value));
}

}  // namespace

fbs::PlanT ToyTrainPlan(const ToyShape& s) {
  ToyBuilder b("toy", s.seed, s.threads);
  const Shape table = {s.vocabulary, s.width}, ids = {s.rows, s.sequence}, rows = {s.rows, s.sequence, s.width};
  const int64_t n = s.rows * s.sequence, parameters = s.vocabulary * s.width;
  const auto float_buffer = [&](const std::string& name, const Shape& shape, BufferKind kind = BufferKind::Temporary) {
    return b.Buffer(name, kind, DType::F32, shape);
  };
  const uint32_t e = b.State(kToyEmbedKey, kParameterFlags, DType::F32, table);
  const uint32_t o = b.State(kToyHeadKey, kParameterFlags, DType::F32, table);
  const uint32_t me = b.State("embed.m", fbs::StateFlag::Saved, DType::F32, table);
  const uint32_t mo = b.State("head.m", fbs::StateFlag::Saved, DType::F32, table);
  const uint32_t step = b.State("step", kStepFlags, DType::I32, {});
  const uint32_t cache = s.cache ? b.Cache() : 0;
  // No registered kernel adds integers: the counter takes its next value from a queue.
  const uint32_t queue = b.State("queue", fbs::StateFlag::Saved, DType::I32, {s.max_steps});
  std::vector<int32_t> counts(static_cast<size_t>(s.max_steps));
  std::iota(counts.begin(), counts.end(), 1);
  std::vector<float> rates, negative_rates;
  for (int64_t i = 0; i < s.max_steps; ++i) {
    rates.push_back(static_cast<float>(s.lr / static_cast<double>(i + 1)));
    negative_rates.push_back(-rates.back());
  }
  const uint32_t first_queue = b.Constant("first queue", DType::I32, counts, {s.max_steps});
  const uint32_t rate_table = b.Constant("rates", DType::F32, rates, {s.max_steps, 1});
  const uint32_t negative_table = b.Constant("negative rates", DType::F32, negative_rates, {s.max_steps, 1});
  const double per_token = 1.0 / static_cast<double>(n * s.microbatches);
  const uint32_t one = b.Constant("one", DType::F32, Repeated(1, 1), {1});
  const uint32_t ones = b.Constant("ones", DType::F32, Repeated(n, 1), {n});
  const uint32_t inverse = b.Constant("1/T", DType::F32, Repeated(n, per_token), {n});
  const uint32_t tokens = b.Buffer("tokens", BufferKind::Input, DType::I32, ids, s.microbatches);
  const uint32_t labels = b.Buffer("labels", BufferKind::Input, DType::I32, ids, s.microbatches);
  const uint32_t eval_tokens = b.Buffer("eval tokens", BufferKind::Input, DType::I32, ids);
  const uint32_t eval_labels = b.Buffer("eval labels", BufferKind::Input, DType::I32, ids);
  const uint32_t loss = float_buffer("loss", {}, BufferKind::Output);
  const uint32_t norm = float_buffer("grad_norm", {}, BufferKind::Output);
  const uint32_t lr = float_buffer("lr", {}, BufferKind::Output);
  const uint32_t loss_sum = float_buffer("loss_sum", {}, BufferKind::Output);
  const uint32_t token_count = float_buffer("token_count", {}, BufferKind::Output);
  const uint32_t negative_lr = float_buffer("-lr", {});
  const uint32_t e_rows = float_buffer("e rows", rows), o_rows = float_buffer("o rows", rows);
  const uint32_t dots = float_buffer("dots", {n});
  const uint32_t part = float_buffer("part", table);
  const uint32_t ge = float_buffer("ge", table), go = float_buffer("go", table);
  const uint32_t shifted = b.Buffer("shifted", BufferKind::Temporary, DType::I32, {s.max_steps});

  b.BeginProgram("init");
  b.BeginSegment("init");
  b.Normal(e, table, static_cast<int64_t>(s.seed), 1);
  b.Normal(o, table, static_cast<int64_t>(s.seed), 2);
  b.Fill(me, table, 0);
  b.Fill(mo, table, 0);
  b.Fill(step, {}, 0);
  if (s.cache) b.Fill(cache, {2}, kToyEmpty);
  b.Copy(first_queue, 0, queue, 0, static_cast<uint64_t>(s.max_steps) * 4);
  b.Call();
  b.Entry(fbs::EntryKind::Init, {}, {});

  const auto forward = [&](uint32_t tokens_in, uint32_t labels_in) {
    b.Gather(e, table, tokens_in, ids, e_rows);
    b.Gather(o, table, labels_in, ids, o_rows);
    b.Dot(e_rows, o_rows, dots, n, 1, s.width, false);
  };
  b.BeginProgram("train");
  b.BeginSegment("zero");
  b.Fill(ge, table, 0);
  b.Fill(go, table, 0);
  b.Fill(loss, {}, 0);
  b.Call();
  b.BeginSegment("micro");
  forward(tokens, labels);
  b.Dot(dots, inverse, loss, 1, 1, n, true);
  b.ScatterAdd(o_rows, tokens, ids, part, table);
  b.Dot(part, inverse, ge, 1, parameters, 1, true);
  b.ScatterAdd(e_rows, labels, ids, part, table);
  b.Dot(part, inverse, go, 1, parameters, 1, true);
  for (int64_t slot = 0; slot < s.microbatches; ++slot) b.Call(static_cast<uint32_t>(slot));
  b.BeginSegment("update");
  b.Dot(ge, ge, norm, 1, 1, parameters, false);
  b.Dot(go, go, norm, 1, 1, parameters, true);
  b.Gather(rate_table, {s.max_steps, 1}, step, {1}, lr);
  b.Gather(negative_table, {s.max_steps, 1}, step, {1}, negative_lr);
  for (const auto& [parameter, moment, gradient] : {std::tuple{e, me, ge}, std::tuple{o, mo, go}}) {
    b.Dot(gradient, one, moment, 1, parameters, 1, true);
    b.Dot(moment, negative_lr, parameter, 1, parameters, 1, true);
  }
  b.Copy(queue, 0, step, 0, 4);
  b.Copy(queue, 4, shifted, 0, static_cast<uint64_t>(s.max_steps - 1) * 4);
  if (s.cache) b.Fill(cache, {2}, kToyUsed);
  b.Copy(shifted, 0, queue, 0, static_cast<uint64_t>(s.max_steps - 1) * 4);
  b.Call();
  b.Entry(fbs::EntryKind::TrainStep, {{"tokens", tokens, s.vocabulary}, {"labels", labels, s.vocabulary}},
          {{"loss", loss}, {"grad_norm", norm}, {"lr", lr}});

  b.BeginProgram("eval");
  b.BeginSegment("eval");
  forward(eval_tokens, eval_labels);
  b.Dot(dots, ones, loss_sum, 1, 1, n, false);
  b.Fill(token_count, {}, static_cast<double>(n));
  b.Call();
  b.Entry(fbs::EntryKind::EvalStep, {{"tokens", eval_tokens, s.vocabulary}, {"labels", eval_labels, s.vocabulary}},
          {{"loss_sum", loss_sum}, {"token_count", token_count}});

  const auto attach = [&](const std::string& name, const std::string& text) {
    auto attachment = std::make_unique<fbs::AttachmentT>();
    attachment->name = name;
    attachment->text = text;
    b.plan().attachments.push_back(std::move(attachment));
  };
  attach("config.json", "{\"model_type\": \"toy\"}");
  if (!s.recipe.empty()) attach("recipe.json", s.recipe);
  return b.Take();
}

double ToyWeight(int64_t position, int64_t t) {
  return t > position ? 0.0 : 1.0 / static_cast<double>(1 + position - t + (t % 3));
}

fbs::PlanT ToyGeneratePlan(const ToyShape& s) {
  ToyBuilder b("toy generator", s.seed, s.threads);
  const Shape table = {s.vocabulary, s.width};
  const uint32_t cache = s.cache ? b.Cache() : 0;
  const uint32_t e = b.State(kToyEmbedKey, kParameterFlags, DType::F32, table);
  const uint32_t o = b.State(kToyHeadKey, kParameterFlags, DType::F32, table);
  std::vector<float> weights;
  for (int64_t p = 0; p < s.sequence; ++p) {
    for (int64_t t = 0; t < s.sequence; ++t) weights.push_back(static_cast<float>(ToyWeight(p, t)));
  }
  const Shape square = {s.sequence, s.sequence};
  const uint32_t weight_table = b.Constant("weights", DType::F32, weights, square);
  const uint32_t tokens = b.Buffer("tokens", BufferKind::Input, DType::I32, {1, s.sequence});
  const uint32_t position = b.Buffer("position", BufferKind::Input, DType::I32, {1});
  const uint32_t logits = b.Buffer("logits", BufferKind::Output, DType::F32, {1, s.vocabulary});
  const uint32_t e_rows = b.Buffer("e rows", BufferKind::Temporary, DType::F32, {1, s.sequence, s.width});
  const uint32_t row = b.Buffer("row", BufferKind::Temporary, DType::F32, {1, s.sequence});
  const uint32_t hidden = b.Buffer("hidden", BufferKind::Temporary, DType::F32, {1, s.width});
  b.BeginProgram("generate");
  b.BeginSegment("generate");
  b.Gather(e, table, tokens, {1, s.sequence}, e_rows);
  b.Gather(weight_table, square, position, {1}, row);
  b.Launch(
      "matmul",
      {Int("batch", 1), Int("m", 1), Int("n", s.width), Int("k", s.sequence), Ints("a_strides", {0, s.sequence, 1}),
       Ints("b_strides", {0, s.width, 1}), Ints("c_strides", {0, s.width, 1})},
      {{row, Access::kRead, {1, s.sequence}},
       {e_rows, Access::kRead, {s.sequence, s.width}},
       {hidden, Access::kWrite, {1, s.width}}});
  b.Dot(o, hidden, logits, 1, s.vocabulary, s.width, false);
  if (s.cache) b.Fill(cache, {2}, kToyUsed);
  b.Call();
  b.Entry(fbs::EntryKind::Generate, {{"tokens", tokens, s.vocabulary}, {"position", position, s.sequence}},
          {{"logits", logits}});
  if (s.cache) {
    b.BeginProgram("init");
    b.BeginSegment("init");
    b.Fill(cache, {2}, kToyEmpty);
    b.Call();
    b.Entry(fbs::EntryKind::Init, {}, {});
  }
  return b.Take();
}

std::unique_ptr<Session> ToySession(fbs::PlanT plan, const SessionOptions& options) {
  const auto bytes = WritePlan(plan);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (!bytes.ok()) return nullptr;
  auto loaded = LoadedPlan::FromBytes({bytes->data(), bytes->size()}, "toy.plan");
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok()) return nullptr;
  SessionOptions unproven = options;
  unproven.prove = false;  // tests take ports away
  auto session = Session::Create(*std::move(loaded), unproven);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

ToyReference::ToyReference(const ToyShape& s, const Session& session) : shape(s) {
  for (const auto& [key, values] : {std::pair{kToyEmbedKey, &e}, std::pair{kToyHeadKey, &o}}) {
    const std::vector<float> stored = testing::ReadTensor<float>(session, session.State(key));
    values->assign(stored.begin(), stored.end());
  }
  me.resize(e.size());
  mo.resize(o.size());
}

double ToyReference::LossSum(absl::Span<const int32_t> tokens, absl::Span<const int32_t> labels) const {
  double sum = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (int64_t d = 0; d < shape.width; ++d) sum += e[tokens[i] * shape.width + d] * o[labels[i] * shape.width + d];
  }
  return sum;
}

ToyReference::Result ToyReference::Step(absl::Span<const int32_t> tokens, absl::Span<const int32_t> labels) {
  const double per_token = 1.0 / static_cast<double>(tokens.size());
  Result result = {LossSum(tokens, labels) * per_token, 0, shape.lr / static_cast<double>(step + 1)};
  std::vector<double> ge(e.size()), go(o.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (int64_t d = 0; d < shape.width; ++d) {
      const int64_t at_e = tokens[i] * shape.width + d, at_o = labels[i] * shape.width + d;
      ge[at_e] += o[at_o] * per_token;
      go[at_o] += e[at_e] * per_token;
    }
  }
  for (size_t i = 0; i < e.size(); ++i) {
    result.squared_norm += ge[i] * ge[i] + go[i] * go[i];
    e[i] -= result.lr * (me[i] += ge[i]);
    o[i] -= result.lr * (mo[i] += go[i]);
  }
  ++step;
  return result;
}

std::vector<double> ToyReference::Logits(absl::Span<const int32_t> text) const {
  const int64_t position = static_cast<int64_t>(text.size()) - 1;
  std::vector<double> logits(static_cast<size_t>(shape.vocabulary));
  for (int64_t v = 0; v < shape.vocabulary; ++v) {
    for (int64_t t = 0; t <= position; ++t) {
      for (int64_t d = 0; d < shape.width; ++d) {
        logits[v] += ToyWeight(position, t) * e[text[t] * shape.width + d] * o[v * shape.width + d];
      }
    }
  }
  return logits;
}

void SequentialBatch(const std::vector<uint16_t>& data, const ToyShape& shape, int64_t step,
                     std::vector<int32_t>* tokens, std::vector<int32_t>* labels) {
  const int64_t samples = (static_cast<int64_t>(data.size()) - 1) / shape.sequence;
  tokens->clear();
  labels->clear();
  for (int64_t i = step * shape.batch(); i < (step + 1) * shape.batch(); ++i) {
    for (int64_t t = 0; t < shape.sequence; ++t) {
      const int64_t at = i % samples * shape.sequence + t;
      tokens->push_back(data[at]);
      labels->push_back(data[at + 1]);
    }
  }
}

std::vector<uint16_t> RandomTokens(int64_t count, int64_t vocabulary, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint16_t> tokens(static_cast<size_t>(count));
  for (uint16_t& token : tokens) token = static_cast<uint16_t>(random() % static_cast<uint64_t>(vocabulary));
  return tokens;
}

}  // namespace bowline
