#include "runtime/train/generator.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/train/token_ports.h"
#include "runtime/train/token_sampling.h"

namespace bowline {
namespace {

constexpr int64_t kByteTokens = 256;

}  // namespace

absl::StatusOr<Generator> Generator::Create(Session* session) {
  Generator generator(session);
  BOWLINE_ASSIGN_OR_RETURN(const FoundEntry entry, RequireEntry(*session, fbs::EntryKind::Generate));
  generator.entry_ = entry.index;
  const absl::string_view name = entry.name;
  const auto unfit = [&](absl::string_view what) {
    return absl::FailedPreconditionError(absl::StrCat("'", session->loaded_plan().name(), "': entry '", name, "' ",
                                                      what,
                                                      "; compile the model again with --mode generate of this build"));
  };
  const auto tokens = session->Input(name, "tokens");
  const auto position = session->Input(name, "position");
  const auto logits = session->Output(name, "logits");
  if (!tokens.ok() || tokens->dtype != fbs::DType::I32 || tokens->shape.size() != 2 || tokens->shape[0] != 1 ||
      tokens->bytes == 0) {
    return unfit("lacks the input 'tokens' of type i32 [1, sequence]");
  }
  if (!position.ok() || position->dtype != fbs::DType::I32 || position->bytes != sizeof(int32_t)) {
    return unfit("lacks the input 'position' of type i32 [1]");
  }
  if (!logits.ok() || logits->dtype != fbs::DType::F32 || logits->shape.size() != 2 || logits->shape[0] != 1 ||
      logits->bytes == 0) {
    return unfit("lacks the output 'logits' of type f32 [1, vocabulary]");
  }
  const auto& states = *session->plan().states();
  if (std::any_of(states.begin(), states.end(), [](auto* state) { return Has(*state, fbs::StateFlag::PerRequest); })) {
    const absl::StatusOr<int> init = session->FindEntry(fbs::EntryKind::Init);
    if (!init.ok() || session->FindEntry(fbs::EntryKind::TrainStep).ok()) {
      return unfit("lacks, beside it, an entry of kind Init that sets the states of a request and no weights");
    }
    generator.init_ = *init;
  }
  generator.tokens_port_ = *tokens;
  generator.position_port_ = *position;
  generator.logits_port_ = *logits;
  generator.tokens_.resize(tokens->bytes / sizeof(int32_t));
  generator.logits_.resize(logits->bytes / sizeof(float));
  return generator;
}

absl::Status Generator::BeginRequest() { return init_ < 0 ? absl::OkStatus() : session_->Run(init_); }

absl::StatusOr<absl::Span<const float>> Generator::Logits(absl::Span<const int32_t> text, int64_t candidates_count) {
  const size_t seen = std::min(text.size(), tokens_.size());
  std::copy(text.end() - static_cast<ptrdiff_t>(seen), text.end(), tokens_.begin());
  std::fill(tokens_.begin() + static_cast<ptrdiff_t>(seen), tokens_.end(), 0);
  const auto position = static_cast<int32_t>(seen - 1);
  BOWLINE_RETURN_IF_ERROR(session_->WriteAll<int32_t>(tokens_port_, tokens_));
  BOWLINE_RETURN_IF_ERROR(session_->WriteAll<int32_t>(position_port_, {&position, 1}));
  BOWLINE_RETURN_IF_ERROR(session_->Run(entry_));
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(logits_port_, absl::MakeSpan(logits_)));
  const absl::Span<const float> candidates =
      absl::MakeConstSpan(logits_).subspan(0, static_cast<size_t>(candidates_count));
  if (std::all_of(candidates.begin(), candidates.end(), [](float logit) { return std::isfinite(logit); })) {
    return candidates;
  }
  return absl::InternalError(
      absl::StrCat("the logits after token ", text.size(),
                   " are not finite; the weights are those of a run whose loss became NaN, or some value is "
                   "above 65504, if the plan computes in f16: compile it with --dtype bf16"));
}

absl::Status Generator::Generate(absl::string_view prompt, const GenerateOptions& options,
                                 absl::FunctionRef<absl::Status(absl::string_view)> write,
                                 const std::atomic<bool>& stop, Agreement* ranks) {
  std::vector<int32_t> tokens;
  for (const char byte : prompt) tokens.push_back(static_cast<uint8_t>(byte));
  const auto write_byte = [&](int32_t token) {
    const char byte = static_cast<char>(token);
    return write(absl::string_view(&byte, 1));
  };
  return Generate(tokens, options, write_byte, stop, ranks);
}

absl::Status Generator::Generate(absl::Span<const int32_t> prompt, const GenerateOptions& options,
                                 absl::FunctionRef<absl::Status(int32_t)> write, const std::atomic<bool>& stop,
                                 Agreement* ranks) {
  if (prompt.empty()) return absl::InvalidArgumentError("the prompt is empty; give at least one token");
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] >= 0 && prompt[i] < vocabulary()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        options.only_bytes ? "byte " : "token ", i, " of the prompt has the value ", prompt[i],
        ", but the model's vocabulary has ", vocabulary(), " ids; write a prompt of the text that it was trained on"));
  }
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  const int64_t candidates = options.only_bytes ? std::min(kByteTokens, vocabulary()) : vocabulary();
  BOWLINE_RETURN_IF_ERROR(BeginRequest());
  Agreement alone;
  Agreement& agreement = ranks == nullptr ? alone : *ranks;
  for (int64_t i = 0; i < options.max_new_tokens; ++i) {
    // Other ranks may be in the entry already, and learn of a stop only behind it.
    if (agreement.ranks() == 1 && stop.load()) break;
    BOWLINE_ASSIGN_OR_RETURN(const absl::Span<const float> logits, Logits(text, candidates));
    const int64_t choice =
        agreement.rank() == 0 ? SampleToken(logits, options.temperature, options.seed, static_cast<uint64_t>(i)) : 0;
    BOWLINE_ASSIGN_OR_RETURN(const std::optional<int32_t> token,
                             agreement.NumberOfRankZero(static_cast<int32_t>(choice), !stop.load()));
    if (!token.has_value()) break;
    text.push_back(*token);
    if (agreement.rank() != 0) continue;
    BOWLINE_RETURN_IF_ERROR(write(*token));
  }
  return absl::OkStatus();
}

}  // namespace bowline
