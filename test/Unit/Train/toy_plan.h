#ifndef BOWLINE_TEST_UNIT_TRAIN_TOY_PLAN_H_
#define BOWLINE_TEST_UNIT_TRAIN_TOY_PLAN_H_

// Plans of a model that is small enough to compute by hand, made of registered kernels without the compiler, and that
// computation in double.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/executor/session.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// Parameters e and o, both [V, D]. The loss of a batch of T tokens is (1/T) sum_i e[token_i] . o[label_i]; gradients
// are summed up into moments, m += g, and parameters updated with p -= lr[step] m. `grad_norm` is the SQUARE of the
// norm, for no registered kernel takes roots.
struct ToyShape {
  int64_t vocabulary = 7;
  int64_t sequence = 3;
  int64_t rows = 2;
  int64_t microbatches = 2;
  int64_t width = 5;
  int64_t max_steps = 64;  // the schedule is a table
  double lr = 0.05;        // step s uses lr / (s + 1)
  uint64_t seed = 11;
  uint32_t threads = 1;
  std::string recipe = "";  // the plan's recipe.json
  bool cache = false;       // has a state per request, kToyCacheKey

  int64_t batch() const { return rows * microbatches; }
};

inline constexpr char kToyEmbedKey[] = "transformer.embed.weight";
inline constexpr char kToyHeadKey[] = "lm_head.weight";
// f32 [2]: kToyEmpty at first, and kToyUsed when a step was trained or a token generated.
inline constexpr char kToyCacheKey[] = "cache";
inline constexpr float kToyEmpty = 3, kToyUsed = 8;

// Entries init, train_step, eval_step.
fbs::PlanT ToyTrainPlan(const ToyShape& shape = {});

// Entry generate, and init where there is a cache: logits[v] = sum over t <= position of w(position, t) e[token_t] .
// o[v], see ToyWeight.
fbs::PlanT ToyGeneratePlan(const ToyShape& shape = {});
double ToyWeight(int64_t position, int64_t t);

std::unique_ptr<Session> ToySession(fbs::PlanT plan, const SessionOptions& options = {});

// The model in double.
struct ToyReference {
  ToyShape shape;
  std::vector<double> e, o, me, mo;
  int64_t step = 0;

  // Parameters as they are in the session, moments of zero.
  ToyReference(const ToyShape& shape, const Session& session);

  double LossSum(absl::Span<const int32_t> tokens, absl::Span<const int32_t> labels) const;

  struct Result {
    double loss, squared_norm, lr;
  };
  Result Step(absl::Span<const int32_t> tokens, absl::Span<const int32_t> labels);

  // After `text`, which fits into the context.
  std::vector<double> Logits(absl::Span<const int32_t> text) const;
};

// Inputs and labels of step `step` in sequential order, straight from the definition.
void SequentialBatch(const std::vector<uint16_t>& data, const ToyShape& shape, int64_t step,
                     std::vector<int32_t>* tokens, std::vector<int32_t>* labels);

// `count` tokens below `vocabulary`, different for each seed.
std::vector<uint16_t> RandomTokens(int64_t count, int64_t vocabulary, uint32_t seed);

}  // namespace bowline

#endif  // BOWLINE_TEST_UNIT_TRAIN_TOY_PLAN_H_
