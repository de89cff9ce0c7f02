#include "runtime/train/metrics_log.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/json.h"
#include "runtime/base/mapped_file.h"

namespace bowline {
namespace {

// The step of a line of metrics; nothing for any other line.
std::optional<int64_t> StepOf(absl::string_view line) {
  const absl::StatusOr<nlohmann::json> object = ParseJson(line, "");
  if (!object.ok() || !object->is_object()) return std::nullopt;
  const auto found = object->find("step");
  if (found == object->end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

bool IsOfStep(absl::string_view line) { return absl::StrContains(line, "\"loss\""); }

// The content of a file up to a step.
struct Found {
  std::string first;       // its first line, whose step may be a later one; empty if it has none
  uint64_t end = 0;        // bytes up to the first line of a later step, or up to an unfinished last line
  uint64_t whole_end = 0;  // bytes of all whole lines
  int64_t last_step = 0;   // of the last line of a step up to `end`; 0 if there is none
};

absl::StatusOr<Found> Look(const std::string& path, int64_t step) {
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const absl::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  Found found;
  const size_t last = text.rfind('\n');
  found.whole_end = last == absl::string_view::npos ? 0 : last + 1;
  size_t begin = 0;
  for (int64_t number = 1; begin < found.whole_end; ++number) {
    const size_t end = text.find('\n', begin) + 1;
    const absl::string_view line = text.substr(begin, end - begin);
    const std::optional<int64_t> of = StepOf(line);
    if (!of.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", path, "', line ", number, ", is no line of metrics; resume with the run's own file or a new one"));
    }
    if (begin == 0) found.first = std::string(line);
    if (*of > step) break;
    if (IsOfStep(line)) found.last_step = *of;
    begin = end;
  }
  found.end = begin;
  return found;
}

// The run that a first line names; empty for files of before.
std::string RunOf(absl::string_view line) {
  const absl::StatusOr<nlohmann::json> object = ParseJson(line, "");
  if (!object.ok() || !object->is_object()) return "";
  const auto found = object->find("run");
  return found != object->end() && found->is_string() ? found->get<std::string>() : "";
}

// Adds the run to a line.
std::string WithRun(absl::string_view line, const std::string& run) {
  absl::ConsumeSuffix(&line, "}\n");
  return absl::StrCat(line, ",\"run\":\"", run, "\"}\n");
}

// Whether the file has the line, be it with the run.
bool HasLine(const std::string& path, absl::string_view line) {
  absl::ConsumeSuffix(&line, "}\n");
  const std::string plain = absl::StrCat(line, "}"), first = absl::StrCat(line, ",\"run\":");
  std::ifstream file(path);
  for (std::string there; std::getline(file, there);) {
    if (there == plain || absl::StartsWith(there, first)) return true;
  }
  return false;
}

}  // namespace

absl::Status MetricsLog::CheckFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return absl::OkStatus();
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const absl::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  // A run that was killed may have written a part of its first line.
  constexpr absl::string_view kBegin = "{\"step\":";
  const absl::string_view line = text.substr(0, text.find('\n'));
  const bool is_part = line.size() == text.size() && line.substr(0, kBegin.size()) == kBegin.substr(0, line.size());
  if (is_part || StepOf(line).has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", path,
                   "' exists and holds no metrics of an earlier run, so that it is not overwritten; give "
                   "another name, or delete it"));
}

absl::StatusOr<MetricsLog> MetricsLog::Create(const std::string& path, const std::string& run, PipeHooks hooks) {
  BOWLINE_ASSIGN_OR_RETURN(JsonLinesWriter writer, JsonLinesWriter::Open(path, std::move(hooks)));
  MetricsLog log(std::move(writer), run);
  if (!log.writer_.is_file()) return log;
  BOWLINE_RETURN_IF_ERROR(CheckFile(path));
  BOWLINE_ASSIGN_OR_RETURN(const Found found, Look(path, 0));
  if (!found.first.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", path,
                     "' holds metrics of an earlier run; give another name, or delete it, or go on with that run by "
                     "--resume"));
  }
  BOWLINE_RETURN_IF_ERROR(log.writer_.Cut(0));
  return log;
}

absl::StatusOr<MetricsLog> MetricsLog::Continue(const std::string& path, const Place& place, PipeHooks hooks) {
  BOWLINE_ASSIGN_OR_RETURN(JsonLinesWriter writer, JsonLinesWriter::Open(path, std::move(hooks)));
  MetricsLog log(std::move(writer), place.run);
  log.is_finished_ = place.is_finished;
  Found found;
  if (log.writer_.is_file()) {
    BOWLINE_ASSIGN_OR_RETURN(found, Look(path, place.step));
    if (found.first.empty()) BOWLINE_RETURN_IF_ERROR(CheckFile(path));
    const std::string run = RunOf(found.first);
    if (!run.empty() && run != place.run) {
      return absl::FailedPreconditionError(absl::StrCat(
          "'", path, "' holds metrics of another run; give the file of the run that is resumed, or another name"));
    }
    const uint64_t end = place.is_finished ? found.whole_end : found.end;
    BOWLINE_RETURN_IF_ERROR(log.writer_.Cut(end));
    log.names_run_ = end > 0;
  }
  int64_t last = found.last_step;
  for (const std::string& line : place.unwritten) {
    const bool is_there = log.writer_.is_file() && HasLine(path, line);
    if (!is_there) BOWLINE_RETURN_IF_ERROR(log.Write(line));
    if (IsOfStep(line) && StepOf(line) == last + 1) ++last;
  }
  if (last > 0 && last < place.step) {
    log.missing_ = last + 1 == place.step ? absl::StrCat("step ", place.step)
                                          : absl::StrCat("steps ", last + 1, " to ", place.step);
  }
  return log;
}

bool MetricsLog::HasEvaluation(const std::string& path, int64_t step) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (StepOf(line) == step && absl::StrContains(line, "\"eval_loss\"")) return true;
  }
  return false;
}

absl::Status MetricsLog::Write(std::string line) {
  if (failed_.ok()) failed_ = writer_.WriteLine(names_run_ ? line : WithRun(line, run_));
  if (failed_.ok()) {
    names_run_ = true;
  } else {
    unwritten_.push_back(std::move(line));
  }
  return failed_;
}

absl::Status MetricsLog::WriteStep(int64_t step, const StepResult& result, double tokens_per_second,
                                   double milliseconds) {
  nlohmann::ordered_json line = {{"step", step},
                                 {"loss", result.loss},
                                 {"grad_norm", result.grad_norm},
                                 {"lr", result.lr},
                                 {"tokens_per_s", tokens_per_second},
                                 {"step_ms", milliseconds}};
  if (result.host_seconds.has_value()) line["host_ms"] = *result.host_seconds * 1e3;
  return Write(JsonLinesWriter::LineOf(line));
}

absl::Status MetricsLog::WriteChanges(int64_t step, absl::Span<const SettingChange> changes) {
  // Values that are no JSON are texts.
  const auto value = [](const std::string& text) {
    nlohmann::ordered_json parsed = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    return parsed.is_discarded() ? nlohmann::ordered_json(text) : parsed;
  };
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const SettingChange& change : changes) {
    all[change.name] = {{"from", value(change.saved)}, {"to", value(change.here)}};
  }
  return Write(JsonLinesWriter::LineOf({{"step", step}, {"changes", all}}));
}

absl::Status MetricsLog::WriteSave(const SavedCheckpoint& saved) {
  return Write(
      JsonLinesWriter::LineOf({{"step", saved.step}, {"save_s", saved.seconds}, {"save_stall_s", saved.stall}}));
}

absl::Status MetricsLog::WriteEvaluation(int64_t step, double loss) {
  std::string line = JsonLinesWriter::LineOf({{"step", step}, {"eval_loss", loss}});
  if (is_finished_ && writer_.is_file() && HasLine(writer_.path(), line)) return absl::OkStatus();
  return Write(std::move(line));
}

}  // namespace bowline
