#include "runtime/base/chrome_trace.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/atomic_file.h"

namespace bowline {

void ChromeTrace::Name(const char* kind, int64_t process, int64_t thread, const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Event event{process, thread, {}, kind};
  event.slice.name = name;
  events_.push_back(std::move(event));
}

void ChromeTrace::Add(int64_t process, int64_t thread, const Slice& slice) {
  const std::lock_guard<std::mutex> lock(mutex_);
  events_.push_back({process, thread, slice, ""});
}

absl::Status ChromeTrace::Write(const std::string& path) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  double first = std::numeric_limits<double>::infinity();
  for (const Event& event : events_) {
    if (event.named.empty()) first = std::min(first, event.slice.begin_us);
  }
  BOWLINE_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path));
  BOWLINE_RETURN_IF_ERROR(file.Append("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"));
  for (size_t i = 0; i < events_.size(); ++i) {
    const Event& event = events_[i];
    nlohmann::ordered_json json;
    json["pid"] = event.process;
    json["tid"] = event.thread;
    if (event.named.empty()) {
      json["ph"] = "X";
      json["name"] = event.slice.name;
      json["cat"] = event.slice.category;
      json["ts"] = event.slice.begin_us - first;
      json["dur"] = event.slice.duration_us;
      if (!event.slice.arguments.empty()) json["args"] = event.slice.arguments;
    } else {
      json["ph"] = "M";
      json["name"] = event.named;
      json["args"]["name"] = event.slice.name;
    }
    BOWLINE_RETURN_IF_ERROR(file.Append(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
    BOWLINE_RETURN_IF_ERROR(file.Append(i + 1 < events_.size() ? ",\n" : "\n"));
  }
  BOWLINE_RETURN_IF_ERROR(file.Append("]}\n"));
  return file.Commit();
}

}  // namespace bowline
