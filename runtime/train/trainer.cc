#include "runtime/train/trainer.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/plan/plan_view.h"
#include "runtime/train/model_config.h"
#include "runtime/train/model_state.h"

namespace bowline {
namespace {

// Draws of a hostile checkpoint beyond it could overflow.
constexpr int64_t kMaxDraw = int64_t{1} << 60;

}  // namespace

absl::StatusOr<Trainer> Trainer::Create(Session* session, const TokenDataset* dataset, DataOrder order) {
  BOWLINE_ASSIGN_OR_RETURN(const FoundEntry entry, RequireEntry(*session, fbs::EntryKind::TrainStep));
  BOWLINE_ASSIGN_OR_RETURN(TokenPorts ports, TokenPorts::Find(*session, entry.name));
  BOWLINE_ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create(dataset, ports.sequence(), order, session->plan().seed()));
  Trainer trainer(session, dataset, std::move(ports), std::move(sampler));
  trainer.entry_ = entry.index;
  trainer.data_digest_ = DigestOf(*dataset);
  trainer.fills_ahead_ = session->plan().entries()->Get(entry.index)->in_flight() > 1;
  BOWLINE_ASSIGN_OR_RETURN(trainer.loss_, FindScalarOutput(*session, entry.name, "loss"));
  BOWLINE_ASSIGN_OR_RETURN(trainer.grad_norm_, FindScalarOutput(*session, entry.name, "grad_norm"));
  BOWLINE_ASSIGN_OR_RETURN(trainer.lr_, FindScalarOutput(*session, entry.name, "lr"));
  return trainer;
}

absl::Status Trainer::Initialize() {
  BOWLINE_ASSIGN_OR_RETURN(const FoundEntry init, RequireEntry(*session_, fbs::EntryKind::Init));
  BOWLINE_RETURN_IF_ERROR(session_->Run(init.index));
  step_ = 0;
  next_draw_ = 0;
  filled_.reset();
  return absl::OkStatus();
}

absl::Status Trainer::Resume(const Checkpoint& checkpoint) {
  const TrainerState& state = checkpoint.state();
  const auto differs = [&](absl::string_view what, const auto& saved, const auto& here) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", checkpoint.path(), "' was saved by a run with ", what, " ", saved, ", not ", here,
        ", and would not go on as it began; resume it as it was, or begin a new run from its weights with --weights ",
        checkpoint.path()));
  };
  if (state.order != sampler_.order()) return differs("data order", NameOf(state.order), NameOf(sampler_.order()));
  if (state.seed != sampler_.seed()) return differs("seed", state.seed, sampler_.seed());
  if (state.data_tokens != dataset_->size()) {
    return differs("data of this many tokens:", state.data_tokens, dataset_->size());
  }
  if (!state.data_digest.empty() && state.data_digest != data_digest_) {
    return differs("data with other tokens; samples of them have the digest", state.data_digest, data_digest_);
  }
  if (state.batch != 0 && state.batch != ports_.batch()) {
    return differs("a global batch of this many sequences:", state.batch, ports_.batch());
  }
  if (state.sequence != 0 && state.sequence != ports_.sequence()) {
    return differs("sequences of this many tokens:", state.sequence, ports_.sequence());
  }
  if (state.next_draw > kMaxDraw) {
    return absl::DataLossError(absl::StrCat("'", checkpoint.path(), "': next_draw ", state.next_draw,
                                            " is beyond any run; the checkpoint is damaged, resume from another"));
  }
  BOWLINE_RETURN_IF_ERROR(RequireSameConfig(session_->plan(), session_->loaded_plan().name(), checkpoint.path()));
  BOWLINE_RETURN_IF_ERROR(
      checkpoint.Load(StateTensors(*session_), RankOf(*session_), [this] { return InitializeUnsaved(*session_); }));
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<int32_t> counter, ReadStepState(*session_));
  if (counter.has_value() && *counter != state.step) {
    return absl::DataLossError(absl::StrCat("'", checkpoint.path(), "': trainer_state.json says step ", state.step,
                                            ", but the optimizer's counter says ", *counter,
                                            "; the checkpoint is damaged, resume from another"));
  }
  step_ = state.step;
  next_draw_ = state.next_draw;
  filled_.reset();
  return absl::OkStatus();
}

absl::Status Trainer::FillNext() {
  if (filled_ == next_draw_) return absl::OkStatus();
  filled_.reset();
  if (absl::Status filled = ports_.Fill(*session_, sampler_, next_draw_); !filled.ok()) {
    return Annotate(filled, absl::StrCat("step ", step_ + 1));
  }
  filled_ = next_draw_;
  return absl::OkStatus();
}

absl::StatusOr<StepResult> Trainer::Step() {
  BOWLINE_RETURN_IF_ERROR(FillNext());
  filled_.reset();
  const std::optional<double> issued_before = session_->IssueSeconds();
  if (absl::Status ran = Run(); !ran.ok()) return Annotate(ran, absl::StrCat("step ", step_ + 1));
  ++step_;
  next_draw_ += ports_.batch();
  StepResult result;
  if (issued_before.has_value()) result.host_seconds = *session_->IssueSeconds() - *issued_before;
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(loss_, absl::MakeSpan(&result.loss, 1)));
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(grad_norm_, absl::MakeSpan(&result.grad_norm, 1)));
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(lr_, absl::MakeSpan(&result.lr, 1)));
  return result;
}

absl::Status Trainer::Run() {
  if (!fills_ahead_) return session_->Run(entry_);
  BOWLINE_ASSIGN_OR_RETURN(const RunTicket ticket, session_->Start(entry_));
  // Data that is not fit is the next step's affair, if there is one.
  const int64_t next = next_draw_ + ports_.batch();
  const bool filled = ports_.Fill(*session_, sampler_, next).ok();
  BOWLINE_RETURN_IF_ERROR(session_->Wait(ticket));
  if (filled) filled_ = next;
  return absl::OkStatus();
}

CheckpointContent Trainer::Content() const {
  CheckpointContent content;
  TrainerState& state = content.state;
  state.step = step_;
  state.seed = sampler_.seed();
  state.order = sampler_.order();
  state.next_draw = next_draw_;
  state.data_tokens = dataset_->size();
  state.data_digest = data_digest_;
  state.plan = std::string(TextOf(session_->plan().name()));
  state.batch = ports_.batch();
  state.sequence = ports_.sequence();
  content.tensors = StateTensors(*session_);
  content.config_json = std::string(AttachedConfig(session_->plan()));
  content.self = RankOf(*session_);
  return content;
}

absl::StatusOr<std::string> Trainer::Save(const std::string& directory, Agreement* agreement) const {
  Agreement alone;
  return SaveCheckpointOfRanks(directory, Content(), agreement == nullptr ? alone : *agreement);
}

}  // namespace bowline
