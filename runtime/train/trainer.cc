#include "runtime/train/trainer.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/plan/view/plan_view.h"
#include "runtime/train/checkpoint/saved_type.h"
#include "runtime/train/model_config.h"
#include "runtime/train/model_state.h"
#include "runtime/train/tensors/non_finite.h"

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

// A setting that a checkpoint and this run share, beside the recipe.
struct Trainer::Setting {
  SettingChange values;
  bool differs = false;
  // Draws of another value are others: they begin anew.
  bool is_of_draws = true;
};

std::vector<Trainer::Setting> Trainer::SettingsBeside(const TrainerState& state) const {
  std::vector<Setting> settings;
  const auto add = [&](const char* name, const auto& saved, const auto& here, bool is_said, bool is_of_draws) {
    settings.push_back({{name, absl::StrCat(saved), absl::StrCat(here)}, is_said && saved != here, is_of_draws});
  };
  add("order", NameOf(state.order), NameOf(sampler_.order()), /*is_said=*/true, /*is_of_draws=*/true);
  add("seed", state.seed, sampler_.seed(), /*is_said=*/true, /*is_of_draws=*/true);
  // Older checkpoints do not say these.
  add("batch", state.batch, ports_.batch(), state.batch != 0, /*is_of_draws=*/false);
  add("seq", state.sequence, ports_.sequence(), state.sequence != 0, /*is_of_draws=*/true);
  const auto data = [](int64_t tokens, const std::string& names, const std::string& digest) {
    return absl::StrCat(tokens, " tokens", names.empty() ? "" : absl::StrCat(" of ", names),
                        digest.empty() ? "" : absl::StrCat(", digest ", digest.substr(0, 12)));
  };
  const bool other_tokens = !state.data_digest.empty() && state.data_digest != data_digest_;
  settings.push_back({{"data", data(state.data_tokens, state.data_names, state.data_digest),
                       data(dataset_->size(), NamesOf(*dataset_), data_digest_)},
                      state.data_tokens != dataset_->size() || other_tokens});
  return settings;
}

std::vector<std::string> Trainer::SettingNames(const TrainerState& state) const {
  std::set<std::string> names;
  for (const Setting& setting : SettingsBeside(state)) names.insert(setting.values.name);
  for (const absl::string_view recipe :
       {absl::string_view(state.recipe), AttachmentOf(session_->plan(), kRecipeAttachment)}) {
    const absl::StatusOr<nlohmann::json> settings = ParseAttachment(kRecipeAttachment, recipe);
    if (!settings.ok()) continue;
    for (const auto& [name, value] : settings->items()) names.insert(name);
  }
  return {names.begin(), names.end()};
}

absl::Status Trainer::Resume(const Checkpoint& checkpoint, absl::Span<const std::string> allowed, FiniteCheck* check) {
  const TrainerState& state = checkpoint.state();
  absl::StatusOr<std::vector<SettingChange>> changes =
      DifferencesOfRecipes(state.recipe, AttachmentOf(session_->plan(), kRecipeAttachment));
  if (!changes.ok()) return Annotate(changes.status(), absl::StrCat("'", checkpoint.path(), "'"));
  bool draws_go_on = true;
  for (Setting& setting : SettingsBeside(state)) {
    if (!setting.differs) continue;
    draws_go_on &= !setting.is_of_draws;
    changes->push_back(std::move(setting.values));
  }
  // Settings that a user changed in the file are no differences between runs.
  if (!changes->empty()) BOWLINE_RETURN_IF_ERROR(checkpoint.CheckState());
  BOWLINE_RETURN_IF_ERROR(CheckChanges(checkpoint.path(), *changes, allowed, SettingNames(state)));
  if (state.next_draw > kMaxDraw) {
    return checkpoint.Damaged(absl::DataLossError(
        absl::StrCat("'", checkpoint.path(), "': next_draw ", state.next_draw, " is beyond any run")));
  }
  BOWLINE_RETURN_IF_ERROR(
      checkpoint.Damaged(RequireSameConfig(session_->plan(), session_->loaded_plan().name(), checkpoint.path())));
  const absl::Status loaded = checkpoint.Load(
      StateTensors(*session_), RankOf(*session_), [this] { return InitializeUnsaved(*session_); }, check);
  if (IsNotFinite(loaded)) return Annotate(loaded, absl::StrCat("'", checkpoint.path(), "'"));
  BOWLINE_RETURN_IF_ERROR(loaded);
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<int32_t> counter, ReadStepState(*session_));
  if (counter.has_value() && *counter != state.step) {
    return checkpoint.Damaged(
        absl::DataLossError(absl::StrCat("'", checkpoint.path(), "': trainer_state.json says step ", state.step,
                                         ", but the optimizer's counter says ", *counter)));
  }
  step_ = state.step;
  next_draw_ = draws_go_on ? state.next_draw : 0;
  filled_.reset();
  changes_ = *changes;
  if (!state.run.empty()) run_ = state.run;
  unwritten_metrics_ = state.unwritten_metrics;
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
  return Step([](absl::FunctionRef<void()> fill) {
    fill();
    return absl::OkStatus();
  });
}

absl::StatusOr<StepResult> Trainer::Step(FillTogether fill_together) {
  BOWLINE_RETURN_IF_ERROR(FillNext());
  filled_.reset();
  const std::optional<double> issued_before = session_->IssueSeconds();
  if (absl::Status ran = Run(fill_together); !ran.ok()) return Annotate(ran, absl::StrCat("step ", step_ + 1));
  ++step_;
  next_draw_ += ports_.batch();
  StepResult result;
  if (issued_before.has_value()) result.host_seconds = *session_->IssueSeconds() - *issued_before;
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(loss_, absl::MakeSpan(&result.loss, 1)));
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(grad_norm_, absl::MakeSpan(&result.grad_norm, 1)));
  BOWLINE_RETURN_IF_ERROR(session_->ReadAll(lr_, absl::MakeSpan(&result.lr, 1)));
  return result;
}

absl::Status Trainer::Run(FillTogether fill_together) {
  if (!fills_ahead_) return session_->Run(entry_);
  BOWLINE_ASSIGN_OR_RETURN(const RunTicket ticket, session_->Start(entry_));
  // Data that is not fit is the next step's affair, if there is one.
  const int64_t next = next_draw_ + ports_.batch();
  bool filled = false;
  const absl::Status met = fill_together([&] { filled = ports_.Fill(*session_, sampler_, next).ok(); });
  BOWLINE_RETURN_IF_ERROR(session_->Wait(ticket));
  BOWLINE_RETURN_IF_ERROR(met);
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
  state.data_names = NamesOf(*dataset_);
  state.plan = std::string(TextOf(session_->plan().name()));
  state.batch = ports_.batch();
  state.sequence = ports_.sequence();
  state.run = run_;
  state.unwritten_metrics = unwritten_metrics_;
  state.recipe = std::string(AttachmentOf(session_->plan(), kRecipeAttachment));
  content.tensors = StateTensors(*session_);
  if (saved_type_ != ElementType::kF32) {
    content.tensors = WithRoundedParameters(std::move(content.tensors), saved_type_);
  }
  content.config_json = ConfigWithType(AttachedConfig(session_->plan()), content.tensors);
  content.self = RankOf(*session_);
  return content;
}

absl::StatusOr<std::string> Trainer::Save(const std::string& directory, Agreement* agreement) const {
  Agreement alone;
  return SaveCheckpointOfRanks(directory, Content(), agreement == nullptr ? alone : *agreement);
}

}  // namespace bowline
