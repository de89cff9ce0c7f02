#include "runtime/train/metrics_log.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/json.h"
#include "runtime/base/mapped_file.h"

namespace bowline {
namespace {

// Bytes of the file up to the first line of a step after `step`, or up to an unfinished last line.
absl::StatusOr<uint64_t> FindEnd(const std::string& path, int64_t step) {
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const absl::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  size_t begin = 0;
  for (int64_t line = 1; begin < text.size(); ++line) {
    const size_t end = text.find('\n', begin);
    if (end == absl::string_view::npos) break;
    const absl::StatusOr<nlohmann::json> object = ParseJson(text.substr(begin, end - begin), path);
    const auto found = object.ok() && object->is_object() ? object->find("step") : nlohmann::json::const_iterator();
    if (!object.ok() || !object->is_object() || found == object->end() || !found->is_number_integer()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", path, "', line ", line, ", is no line of metrics; resume with the run's own file or a new one"));
    }
    if (found->get<int64_t>() > step) break;
    begin = end + 1;
  }
  return begin;
}

}  // namespace

absl::StatusOr<MetricsLog> MetricsLog::Create(const std::string& path) {
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

absl::Status MetricsLog::WriteEvaluation(int64_t step, double loss) {
  return writer_.Write({{"step", step}, {"eval_loss", loss}});
}

}  // namespace bowline
