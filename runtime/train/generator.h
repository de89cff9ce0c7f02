#ifndef BOWLINE_RUNTIME_TRAIN_GENERATOR_H_
#define BOWLINE_RUNTIME_TRAIN_GENERATOR_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/comm/agreement.h"
#include "runtime/executor/session.h"

namespace bowline {

struct GenerateOptions {
  int64_t max_new_tokens = 0;
  double temperature = 1;  // at least 0; 0 always picks the likeliest token
  uint64_t seed = 0;
  bool only_bytes = true;  // pick only ids below 256, which stand for bytes
};

// Continues a text with the entry of kind Generate: inputs `tokens` i32 [1, S] and `position` i32 [1], output `logits`
// f32 [1, V] for the token after `position`. In texts a token is one byte, and its id the byte's value.
class Generator {
 public:
  // `session` must have its parameters loaded and outlive the generator. Returns kFailedPrecondition when the plan
  // cannot generate. Each text is one request: if the plan has states per request, the entry of kind Init runs before
  // it. In plans that only generate, that entry sets no weights.
  static absl::StatusOr<Generator> Create(Session* session);

  // Calls `write` with each new token; an error of `write` ends the generation. The model sees at most the last S
  // tokens of the text. The same plan, weights, prompt and options give the same text. If `stop` becomes true,
  // generation ends early with OK.
  //
  // All ranks of a run must call this with the same prompt and options, each with its agreement (null: a run of one
  // rank). Rank 0 chooses the tokens, and only rank 0 calls `write`. A stop on any rank stops all ranks.
  //
  // kInvalidArgument: empty prompt, or an id outside the vocabulary. kInternal: logits that are not finite.
  absl::Status Generate(absl::Span<const int32_t> prompt, const GenerateOptions& options,
                        absl::FunctionRef<absl::Status(int32_t)> write, const std::atomic<bool>& stop,
                        Agreement* agreement = nullptr);

  // As above for a text: `write` receives each byte as it is produced, whether or not the text is valid UTF-8.
  absl::Status Generate(absl::string_view prompt, const GenerateOptions& options,
                        absl::FunctionRef<absl::Status(absl::string_view)> write, const std::atomic<bool>& stop,
                        Agreement* agreement = nullptr);

  int64_t context() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t vocabulary() const { return static_cast<int64_t>(logits_.size()); }

 private:
  explicit Generator(Session* session) : session_(session) {}

  // Sets all states that are per request to their initial values.
  absl::Status BeginRequest();
  // Computes the logits of the token after `text`, and returns those of the ids below `candidates`.
  absl::StatusOr<absl::Span<const float>> Logits(absl::Span<const int32_t> text, int64_t candidates);

  Session* session_;
  int entry_ = 0;
  int init_ = -1;  // the entry of kind Init, if states are per request
  TensorRef tokens_port_, position_port_, logits_port_;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_GENERATOR_H_
