#include "runtime/serve/step_runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/plan/view/plan_view.h"

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
  const auto keep = [&](absl::string_view what, absl::string_view port, const absl::StatusOr<TensorRef>& tensor,
                        fbs::DType dtype, const std::vector<int64_t>& shape, TensorRef& found) -> absl::Status {
    if (!tensor.ok() || tensor->dtype != dtype || tensor->shape != shape) {
      return unfit("lacks the ", what, " '", port, "' of ", fbs::EnumNameDType(dtype), " and the size of its step");
    }
    found = *tensor;
    return absl::OkStatus();
  };
  const auto find = [&](absl::string_view port, const std::vector<int64_t>& shape, TensorRef& found,
                        fbs::DType dtype = fbs::DType::I32) {
    return keep("input", port, session_->Input(name, port), dtype, shape, found);
  };
  const auto find_output = [&](absl::string_view port, const std::vector<int64_t>& shape, TensorRef& found,
                               fbs::DType dtype = fbs::DType::I32) {
    return keep("output", port, session_->Output(name, port), dtype, shape, found);
  };
  const absl::StatusOr<TensorRef> blocks = session_->Input(name, "blocks");
  if (!blocks.ok() || blocks->shape.size() != 2) return unfit("lacks the input 'blocks' of two dimensions");
  step.sequences = blocks->shape[0];
  BOWLINE_RETURN_IF_ERROR(find("blocks", {step.sequences, blocks->shape[1]}, step.blocks_port));
  BOWLINE_RETURN_IF_ERROR(find("tokens", {step.tokens}, step.tokens_port));
  BOWLINE_RETURN_IF_ERROR(find("rows", {step.sequences + 1}, step.rows_port));
  BOWLINE_RETURN_IF_ERROR(find("lengths", {step.sequences}, step.lengths_port));
  BOWLINE_RETURN_IF_ERROR(find("sample", {step.sequences}, step.sample_port));
  BOWLINE_RETURN_IF_ERROR(find("temperature", {step.sequences}, step.temperature_port, fbs::DType::F32));
  BOWLINE_RETURN_IF_ERROR(find("top_k", {step.sequences}, step.top_k_port));
  BOWLINE_RETURN_IF_ERROR(find("top_p", {step.sequences}, step.top_p_port, fbs::DType::F32));
  BOWLINE_RETURN_IF_ERROR(find("seeds", {step.sequences, 2}, step.seeds_port));
  BOWLINE_RETURN_IF_ERROR(find("wanted", {step.sequences}, step.wanted_port));
  BOWLINE_RETURN_IF_ERROR(find_output("sampled", {step.sequences}, step.sampled_port));
  BOWLINE_RETURN_IF_ERROR(find_output("logprobs", {step.sequences}, step.logprobs_port, fbs::DType::F32));
  const absl::StatusOr<TensorRef> likely = session_->Output(name, "likely");
  if (!likely.ok() || likely->shape.size() != 2) return unfit("lacks the output 'likely' of two dimensions");
  step.likely = likely->shape[1];
  BOWLINE_RETURN_IF_ERROR(find_output("likely", {step.sequences, step.likely}, step.likely_port));
  BOWLINE_RETURN_IF_ERROR(
      find_output("likely_logprobs", {step.sequences, step.likely}, step.likely_logprobs_port, fbs::DType::F32));
  const auto limit_of = [&](absl::string_view port) {
    const auto& inputs = *entry.inputs();
    const auto found =
        std::find_if(inputs.begin(), inputs.end(), [&](const fbs::Port* p) { return TextOf(p->name()) == port; });
    return found->limit();
  };
  const int64_t vocabulary = limit_of("tokens");
  if (vocabulary < 1) return unfit("has no limit of the input 'tokens', which says the size of the vocabulary");
  step.most_temperature = static_cast<float>(limit_of("temperature"));
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
    vocabulary_ = vocabulary;
  } else if (own.blocks != shape_.blocks || own.block_tokens != shape_.block_tokens ||
             own.max_context != shape_.max_context || vocabulary != vocabulary_) {
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
        absl::StrCat("the plan has no entry for a step of ", batch.bucket, " tokens and ", all, " sequences"));
  }
  const auto count = static_cast<size_t>(step->sequences);
  if (batch.rows[count] != batch.rows.back()) {
    return absl::InternalError(absl::StrCat("a step of ", batch.bucket, " tokens has more than ", count, " sequences"));
  }
  const size_t listed = batch.blocks.size() / all;
  const auto input = [](const TensorRef& port, absl::Span<const int32_t> values, size_t size) {
    return StepInput{port, {reinterpret_cast<const uint8_t*>(values.data()), size * sizeof(int32_t)}};
  };
  const auto numbers = [](const TensorRef& port, absl::Span<const float> values) {
    return StepInput{port, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)}};
  };
  SetSampling(*step, batch);
  BOWLINE_RETURN_IF_ERROR(RunEntry(
      step->entry,
      {input(step->tokens_port, batch.tokens, batch.tokens.size()), input(step->rows_port, batch.rows, count + 1),
       input(step->lengths_port, batch.lengths, count), input(step->blocks_port, batch.blocks, count * listed),
       input(step->sample_port, batch.sample, count), numbers(step->temperature_port, temperature_),
       input(step->top_k_port, top_k_, count), numbers(step->top_p_port, top_p_),
       input(step->seeds_port, seeds_, 2 * count), input(step->wanted_port, wanted_, count)}));
  return ReadTokens(*step, batch, sampled);
}

void StepRunner::SetSampling(const Step& step, const StepBatch& batch) {
  const auto count = static_cast<size_t>(step.sequences);
  temperature_.resize(count);
  top_k_.resize(count);
  top_p_.resize(count);
  seeds_.resize(2 * count);
  wanted_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const SequenceSampling& how = batch.sampling[i];
    temperature_[i] = step.most_temperature > 0 ? std::min(how.temperature, step.most_temperature) : how.temperature;
    top_k_[i] = static_cast<int32_t>(std::clamp<int64_t>(how.top_k, 0, vocabulary_));
    top_p_[i] = std::clamp(how.top_p, 0.0f, 1.0f);
    seeds_[2 * i] = static_cast<int32_t>(static_cast<uint32_t>(how.seed));
    seeds_[2 * i + 1] = static_cast<int32_t>(static_cast<uint32_t>(how.seed >> 32));
    wanted_[i] =
        batch.wants_token[i] ? static_cast<int32_t>(1 + std::clamp<int64_t>(how.top_logprobs, 0, step.likely)) : 0;
  }
}

absl::Status StepRunner::ReadTokens(const Step& step, const StepBatch& batch, std::vector<SampledToken>& sampled) {
  const auto count = static_cast<size_t>(step.sequences), likely = static_cast<size_t>(step.likely);
  tokens_.resize(count);
  logprobs_.resize(count);
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(step.sampled_port, absl::MakeSpan(tokens_)));
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(step.logprobs_port, absl::MakeSpan(logprobs_)));
  if (*std::max_element(wanted_.begin(), wanted_.end()) > 1) {
    likely_.resize(count * likely);
    likely_logprobs_.resize(count * likely);
    BOWLINE_RETURN_IF_ERROR(session_->ReadAll(step.likely_port, absl::MakeSpan(likely_)));
    BOWLINE_RETURN_IF_ERROR(session_->ReadAll(step.likely_logprobs_port, absl::MakeSpan(likely_logprobs_)));
  }
  sampled.assign(batch.lengths.size(), {});
  for (size_t i = 0; i < count; ++i) {
    if (!batch.wants_token[i]) continue;
    sampled[i] = {.token = tokens_[i], .logprob = logprobs_[i]};
    const auto listed = static_cast<size_t>(wanted_[i] - 1);
    // Fewer where the vocabulary has fewer.
    for (size_t k = i * likely; k < i * likely + listed && likely_[k] >= 0; ++k) {
      sampled[i].top.push_back({likely_[k], likely_logprobs_[k]});
    }
  }
  return absl::OkStatus();
}

}  // namespace bowline::serve
