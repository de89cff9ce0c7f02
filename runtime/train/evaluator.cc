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
  const int64_t available = (sampler.samples() - 1) / ports.batch() + 1;
  if (available < batches) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", dataset->path(), "' has ", sampler.samples(), sampler.samples() == 1 ? " sample of " : " samples of ",
        ports.sequence(), " tokens; evaluating ", batches, batches == 1 ? " batch of " : " batches of ", ports.batch(),
        " needs more: give a longer file or fewer batches"));
  }
  const int64_t samples = batches > 0 && batches < available ? batches * ports.batch() : sampler.samples();
  Evaluator evaluator(session, std::move(ports), std::move(sampler));
  const int64_t batch = evaluator.ports_.batch();
  evaluator.whole_batches_ = samples / batch;
  evaluator.tail_ = samples % batch;
  if (evaluator.tail_ > 0) evaluator.tail_runs_ = batch % evaluator.tail_ == 0 ? 1 : 3;
  evaluator.entry_ = entry.index;
  evaluator.overlaps_ = session->plan().entries()->Get(entry.index)->in_flight() > 1;
  BOWLINE_ASSIGN_OR_RETURN(evaluator.loss_sum_, FindScalarOutput(*session, entry.name, "loss_sum"));
  BOWLINE_ASSIGN_OR_RETURN(evaluator.token_count_, FindScalarOutput(*session, entry.name, "token_count"));
  return evaluator;
}

int64_t Evaluator::DrawOf(int64_t run, int64_t row) const {
  const int64_t first = std::min(run, whole_batches_) * ports_.batch();
  if (run < whole_batches_) return first + row;
  switch (run - whole_batches_) {
    case kRepeated:
      return first + row % tail_;
    case kFirstOnes:
      return row < ports_.batch() % tail_ ? first + row : first;
    default:
      return first;
  }
}

double Evaluator::FactorOf(int64_t run) const {
  if (run < whole_batches_) return 1;
  // With B rows, of which the tail has k: (repeated - (first ones - (B - B % k) / B * copies)) / (B / k).
  const int64_t batch = ports_.batch(), more = batch % tail_, whole_repeats = batch / tail_;
  const auto repeats = static_cast<double>(whole_repeats);
  switch (run - whole_batches_) {
    case kRepeated:
      return 1 / repeats;
    case kFirstOnes:
      return -1 / repeats;
    default:
      return static_cast<double>(batch - more) / static_cast<double>(batch) / repeats;
  }
}

absl::Status Evaluator::FillRows(int64_t run, int64_t first, int64_t count, int32_t* tokens, int32_t* labels) const {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i * ports_.sequence();
    BOWLINE_RETURN_IF_ERROR(sampler_.FillDraws(DrawOf(run, first + i), 1, tokens + at, labels + at));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RunTicket>> Evaluator::Start(int64_t run, GoesOn goes_on) {
  BOWLINE_ASSIGN_OR_RETURN(const bool begins, goes_on([&] {
                             return ports_.Fill(*session_,
                                                [&](int64_t first, int64_t count, int32_t* tokens, int32_t* labels) {
                                                  return FillRows(run, first, count, tokens, labels);
                                                });
                           }));
  if (!begins) return std::nullopt;
  return session_->Start(entry_);
}

absl::StatusOr<Evaluator::Sums> Evaluator::ReadSums() {
  float loss = 0, tokens = 0;
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(loss_sum_, absl::MakeSpan(&loss, 1)));
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(token_count_, absl::MakeSpan(&tokens, 1)));
  return Sums{loss, tokens};
}

absl::StatusOr<std::optional<double>> Evaluator::Evaluate(GoesOn goes_on) {
  Sums all;
  absl::StatusOr<std::optional<RunTicket>> next = Start(0, goes_on);
  for (int64_t run = 0; run < runs(); ++run) {
    BOWLINE_ASSIGN_OR_RETURN(const std::optional<RunTicket> ticket, next);
    if (!ticket.has_value()) return std::nullopt;
    // Where the plan lets two runs overlap, the device has the next batch when it is done with this one.
    const bool is_last = run + 1 == runs();
    if (overlaps_ && !is_last) next = Start(run + 1, goes_on);
    BOWLINE_RETURN_IF_ERROR(session_->Wait(*ticket));
    BOWLINE_ASSIGN_OR_RETURN(const Sums sums, ReadSums());
    all.Add(sums, FactorOf(run));
    if (!overlaps_ && !is_last) next = Start(run + 1, goes_on);
  }
  return all.loss / all.tokens;
}

absl::StatusOr<double> Evaluator::Evaluate() {
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<double> loss, Evaluate([](Fill fill) -> absl::StatusOr<bool> {
                             BOWLINE_RETURN_IF_ERROR(fill());
                             return true;
                           }));
  if (!loss.has_value()) return absl::InternalError("an evaluation ended that nobody stops");
  return *loss;
}

}  // namespace bowline
