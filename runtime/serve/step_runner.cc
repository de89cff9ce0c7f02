#include "runtime/serve/step_runner.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/plan/plan_view.h"
#include "runtime/train/token_sampling.h"

namespace bowline::serve {

absl::StatusOr<StepRunner::Step> StepRunner::FindStep(int index) {
  const fbs::Entry& entry = *session_->plan().entries()->Get(static_cast<uint32_t>(index));
  const absl::string_view name = TextOf(entry.name());
  const auto unfit = [&](const auto&... what) {
    return absl::FailedPreconditionError(absl::StrCat("'", session_->loaded_plan().name(), "': entry '", name, "' ",
                                                      what...,
                                                      "; compile the model again with --mode serve of this "
                                                      "build"));
  };
  const fbs::Sequences* sequences = entry.sequences();
  if (sequences == nullptr) return unfit("says nothing of its sequences");
  Step step;
  step.entry = index;
  step.tokens = entry.bucket();
  const auto find = [&](absl::string_view port, std::vector<int64_t> shape, TensorRef& found) -> absl::Status {
    const absl::StatusOr<TensorRef> tensor = session_->Input(name, port);
    if (!tensor.ok() || tensor->dtype != fbs::DType::I32 || tensor->shape != shape) {
      return unfit("lacks the input '", port, "' of i32 and the size of its step");
    }
    found = *tensor;
    return absl::OkStatus();
  };
  const absl::StatusOr<TensorRef> blocks = session_->Input(name, "blocks");
  if (!blocks.ok() || blocks->shape.size() != 2) return unfit("lacks the input 'blocks' of two dimensions");
  step.sequences = blocks->shape[0];
  BOWLINE_RETURN_IF_ERROR(find("blocks", {step.sequences, blocks->shape[1]}, step.blocks_port));
  BOWLINE_RETURN_IF_ERROR(find("tokens", {step.tokens}, step.tokens_port));
  BOWLINE_RETURN_IF_ERROR(find("rows", {step.sequences + 1}, step.rows_port));
  BOWLINE_RETURN_IF_ERROR(find("lengths", {step.sequences}, step.lengths_port));
  BOWLINE_RETURN_IF_ERROR(find("sample", {step.sequences}, step.sample_port));
  const absl::StatusOr<TensorRef> logits = session_->Output(name, "logits");
  if (!logits.ok() || logits->dtype != fbs::DType::F32 || logits->shape.size() != 2 ||
      logits->shape[0] != step.sequences) {
    return unfit("lacks the output 'logits' of type f32 [sequences, vocabulary]");
  }
  step.logits_port = *logits;
  // The port says it exactly: a table may have room for a few tokens more.
  int64_t context = blocks->shape[1] * sequences->block_tokens();
  if (const int64_t limit = entry.inputs()->Get(sequences->lengths())->limit(); limit > 0)
    context = std::min(context, limit - 1);
  const CacheShape own = {.blocks = sequences->block_count(),
                          .block_tokens = sequences->block_tokens(),
                          .max_context = context,
                          .max_sequences = 0,
                          .buckets = {}};
  if (shape_.buckets.empty()) {
    shape_ = own;
    vocabulary_ = logits->shape[1];
  } else if (own.blocks != shape_.blocks || own.block_tokens != shape_.block_tokens ||
             own.max_context != shape_.max_context || logits->shape[1] != vocabulary_) {
    return unfit("has another cache, context or vocabulary than other steps");
  }
  shape_.max_sequences = std::max(shape_.max_sequences, step.sequences);
  shape_.buckets.push_back(step.tokens);
  return step;
}

absl::StatusOr<StepRunner> StepRunner::Create(Session* session, StepLeader* leader) {
  StepRunner runner(session, leader);
  const auto& entries = *session->plan().entries();
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (entries.Get(i)->kind() != fbs::EntryKind::Step) continue;
    BOWLINE_ASSIGN_OR_RETURN(Step step, runner.FindStep(static_cast<int>(i)));
    runner.steps_.push_back(std::move(step));
  }
  if (runner.steps_.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("'", session->loaded_plan().name(),
                                                      "' has no step of serving; compile the model with --mode serve"));
  }
  std::sort(runner.steps_.begin(), runner.steps_.end(),
            [](const Step& a, const Step& b) { return a.tokens < b.tokens; });
  std::sort(runner.shape_.buckets.begin(), runner.shape_.buckets.end());
  return runner;
}

absl::Status StepRunner::RunEntry(int entry, absl::Span<const StepInput> inputs) {
  if (leader_ != nullptr) BOWLINE_RETURN_IF_ERROR(leader_->Send(entry, inputs));
  const auto run = [&]() -> absl::Status {
    for (const StepInput& input : inputs) BOWLINE_RETURN_IF_ERROR(session_->Write(input.port, input.bytes));
    return session_->Run(entry);
  };
  absl::Status status = run();
  if (leader_ != nullptr && !status.ok()) leader_->Abort(status);
  return status;
}

absl::Status StepRunner::Run(const StepBatch& batch, std::vector<SampledToken>& sampled) {
  const auto step = std::find_if(steps_.begin(), steps_.end(), [&](const Step& s) { return s.tokens == batch.bucket; });
  const size_t all = batch.lengths.size();
  if (step == steps_.end() || all < static_cast<size_t>(step->sequences) || batch.rows.size() != all + 1 ||
      batch.sampling.size() != all || batch.wants_token.size() != all || batch.sample.size() != all) {
    return absl::InternalError(
        absl::StrCat("a step of ", batch.bucket, " tokens and ", all, " sequences does not fit"));
  }
  const auto count = static_cast<size_t>(step->sequences);
  if (batch.rows[count] != batch.rows.back()) {
    return absl::InternalError(absl::StrCat("a step of ", batch.bucket, " tokens has more than ", count, " sequences"));
  }
  const size_t listed = batch.blocks.size() / all;
  const auto input = [](const TensorRef& port, absl::Span<const int32_t> values, size_t size) {
    return StepInput{port, {reinterpret_cast<const uint8_t*>(values.data()), size * sizeof(int32_t)}};
  };
  BOWLINE_RETURN_IF_ERROR(RunEntry(
      step->entry,
      {input(step->tokens_port, batch.tokens, batch.tokens.size()), input(step->rows_port, batch.rows, count + 1),
       input(step->lengths_port, batch.lengths, count), input(step->blocks_port, batch.blocks, count * listed),
       input(step->sample_port, batch.sample, count)}));
  logits_.resize(static_cast<size_t>(step->sequences * vocabulary_));
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(step->logits_port, absl::MakeSpan(logits_)));
  sampled.assign(all, {});
  for (size_t i = 0; i < count; ++i) {
    if (!batch.wants_token[i]) continue;
    const auto width = static_cast<size_t>(vocabulary_);
    const absl::Span<const float> logits = absl::MakeConstSpan(logits_).subspan(i * width, width);
    if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) {
      return absl::InternalError(
          "the logits of a sequence are not finite: its weights are, or some value is above what "
          "the plan computes in");
    }
    const SequenceSampling& how = batch.sampling[i];
    const int64_t token = SampleToken(logits, how.temperature, {.top_k = how.top_k, .top_p = how.top_p}, how.seed,
                                      static_cast<uint64_t>(batch.lengths[i]));
    const double logprob = LogProbability(logits, token);
    sampled[i] = {.token = static_cast<int32_t>(token), .logprob = static_cast<float>(logprob)};
    for (const int64_t likely : MostLikelyTokens(logits, how.top_logprobs)) {
      const double above =
          static_cast<double>(logits[static_cast<size_t>(likely)]) - logits[static_cast<size_t>(token)];
      sampled[i].top.push_back({static_cast<int32_t>(likely), static_cast<float>(logprob + above)});
    }
  }
  return absl::OkStatus();
}

}  // namespace bowline::serve
