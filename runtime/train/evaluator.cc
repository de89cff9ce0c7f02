#include "runtime/train/evaluator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/train/trainer.h"

namespace bowline {

absl::StatusOr<Evaluator> Evaluator::Create(Session* session, const TokenDataset* dataset, int64_t batches) {
  BOWLINE_ASSIGN_OR_RETURN(const FoundEntry entry, RequireEntry(*session, fbs::EntryKind::EvalStep));
  BOWLINE_ASSIGN_OR_RETURN(TokenPorts ports, TokenPorts::Find(*session, entry.name));
  BOWLINE_ASSIGN_OR_RETURN(Sampler sampler,
                           Sampler::Create(dataset, ports.sequence(), DataOrder::kSequential, /*seed=*/0));
  const int64_t available = sampler.samples() / ports.batch();
  if (available < std::max<int64_t>(batches, 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", dataset->path(), "' has ", sampler.samples(), " samples of ", ports.sequence(),
                     " tokens; evaluating ", std::max<int64_t>(batches, 1), " batch(es) of ", ports.batch(),
                     " needs more: give a longer file", batches > 1 ? " or fewer batches" : ""));
  }
  Evaluator evaluator(session, std::move(ports), std::move(sampler));
  evaluator.batches_ = batches > 0 ? batches : available;
  evaluator.entry_ = entry.index;
  evaluator.overlaps_ = session->plan().entries()->Get(entry.index)->in_flight() > 1;
  BOWLINE_ASSIGN_OR_RETURN(evaluator.loss_sum_, FindScalarOutput(*session, entry.name, "loss_sum"));
  BOWLINE_ASSIGN_OR_RETURN(evaluator.token_count_, FindScalarOutput(*session, entry.name, "token_count"));
  return evaluator;
}

absl::Status Evaluator::CheckFirstBatch() { return ports_.Fill(*session_, sampler_, 0); }

absl::StatusOr<RunTicket> Evaluator::Start(int64_t batch) {
  BOWLINE_RETURN_IF_ERROR(ports_.Fill(*session_, sampler_, batch * ports_.batch()));
  return session_->Start(entry_);
}

absl::StatusOr<double> Evaluator::Evaluate() {
  double loss_sum = 0;
  double token_count = 0;
  absl::StatusOr<RunTicket> next = Start(0);
  for (int64_t batch = 0; batch < batches_; ++batch) {
    BOWLINE_ASSIGN_OR_RETURN(const RunTicket run, next);
    // Where the plan lets two runs overlap, the device has the next batch when it is done with this one.
    const bool is_last = batch + 1 == batches_;
    if (overlaps_ && !is_last) next = Start(batch + 1);
    BOWLINE_RETURN_IF_ERROR(session_->Wait(run));
    float of_batch[2] = {};
    BOWLINE_RETURN_IF_ERROR(session_->ReadAll(loss_sum_, absl::MakeSpan(&of_batch[0], 1)));
    BOWLINE_RETURN_IF_ERROR(session_->ReadAll(token_count_, absl::MakeSpan(&of_batch[1], 1)));
    loss_sum += of_batch[0];
    token_count += of_batch[1];
    if (!overlaps_ && !is_last) next = Start(batch + 1);
  }
  return loss_sum / token_count;
}

}  // namespace bowline
