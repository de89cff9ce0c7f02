#include "runtime/train/metrics_log.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

// Bytes of the file up to the first line of a step after `step`, or up to an unfinished last line.
absl::StatusOr<uint64_t> FindEnd(const std::string& path, int64_t step) {
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const absl::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  size_t begin = 0;
  for (int64_t line = 1; begin < text.size(); ++line) {
    const size_t end = text.find('\n', begin);
    if (end == absl::string_view::npos) break;
    const std::optional<int64_t> found = StepOf(text.substr(begin, end - begin));
    if (!found.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", path, "', line ", line, ", is no line of metrics; resume with the run's own file or a new one"));
    }
    if (*found > step) break;
    begin = end + 1;
  }
  return begin;
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

absl::StatusOr<MetricsLog> MetricsLog::Create(const std::string& path) {
  BOWLINE_RETURN_IF_ERROR(CheckFile(path));
  BOWLINE_ASSIGN_OR_RETURN(JsonLinesWriter writer, JsonLinesWriter::Open(path));
  return MetricsLog(std::move(writer));
}

absl::StatusOr<MetricsLog> MetricsLog::Continue(const std::string& path, int64_t step) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    BOWLINE_ASSIGN_OR_RETURN(const uint64_t end, FindEnd(path, step));
    std::filesystem::resize_file(path, end, error);
    if (error) return ErrnoToStatus(error.value(), absl::StrCat("cannot write '", path, "'"));
  }
  BOWLINE_ASSIGN_OR_RETURN(JsonLinesWriter writer, JsonLinesWriter::Open(path, JsonLinesWriter::Mode::kAppend));
  return MetricsLog(std::move(writer));
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

absl::Status MetricsLog::WriteStep(int64_t step, const StepResult& result, double tokens_per_second,
                                   double milliseconds) {
  nlohmann::ordered_json line = {{"step", step},
                                 {"loss", result.loss},
                                 {"grad_norm", result.grad_norm},
                                 {"lr", result.lr},
                                 {"tokens_per_s", tokens_per_second},
                                 {"step_ms", milliseconds}};
  if (result.host_seconds.has_value()) line["host_ms"] = *result.host_seconds * 1e3;
  return writer_.Write(line);
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
  return writer_.Write({{"step", step}, {"changes", all}});
}

absl::Status MetricsLog::WriteSave(const SavedCheckpoint& saved) {
  return writer_.Write({{"step", saved.step}, {"save_s", saved.seconds}, {"save_stall_s", saved.stall}});
}

absl::Status MetricsLog::WriteEvaluation(int64_t step, double loss) {
  return writer_.Write({{"step", step}, {"eval_loss", loss}});
}

}  // namespace bowline
