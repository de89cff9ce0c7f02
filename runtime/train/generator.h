#ifndef BOWLINE_RUNTIME_TRAIN_GENERATOR_H_
#define BOWLINE_RUNTIME_TRAIN_GENERATOR_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/executor/session.h"
#include "runtime/train/agreement.h"

namespace bowline {

struct GenerateOptions {
  int64_t max_new_tokens = 0;
  double temperature = 1;  // >= 0; 0 is greedy
  uint64_t seed = 0;
  bool only_bytes = true;  // pick ids below 256 alone, which have a text
};

// Continues a text by the entry of kind Generate: inputs `tokens` i32 [1, S] and `position` i32 [1], output `logits`
// f32 [1, V], those of the token after `position`. In texts a token is a byte, its id the byte's value.
class Generator {
 public:
  // kFailedPrecondition when the plan cannot generate. `session`, whose parameters are loaded, outlives the generator.
  // Each text is a request: where states are per request, the entry of kind Init runs before it, which sets no weights
  // in plans that only generate.
  static absl::StatusOr<Generator> Create(Session* session);

  // Calls `write` with each token as it is produced; an error of it ends the generation. When the
  // text is longer than the context, the last S tokens are seen. The same plan, weights, prompt and options give the
  // same text. Ends early, without an error, when `stop` becomes true.
  //
  // All ranks of a run call it with the same prompt and options and an agreement of theirs (null: a run of one rank).
  // Rank 0 chooses the tokens and is the only one to write; a stop of any rank stops all.
  //
  // kInvalidArgument for an empty prompt or an id that the vocabulary lacks; kInternal for logits that are no numbers.
  absl::Status Generate(absl::Span<const int32_t> prompt, const GenerateOptions& options,
                        absl::FunctionRef<absl::Status(int32_t)> write, const std::atomic<bool>& stop,
                        Agreement* agreement = nullptr);

  // The same for a text of bytes: `write` gets each byte as it is produced, valid UTF-8 or not.
  absl::Status Generate(absl::string_view prompt, const GenerateOptions& options,
                        absl::FunctionRef<absl::Status(absl::string_view)> write, const std::atomic<bool>& stop,
                        Agreement* agreement = nullptr);

  int64_t context() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t vocabulary() const { return static_cast<int64_t>(logits_.size()); }

 private:
  explicit Generator(Session* session) : session_(session) {}

  // Gives states that are per request their initial value.
  absl::Status BeginRequest();
  // The logits after `text` of the ids below `candidates`.
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
