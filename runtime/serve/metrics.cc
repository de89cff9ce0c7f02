#include "runtime/serve/metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace bowline::serve {

std::string WriteMetrics(const EngineCounts& c, const Latencies::Values& latencies) {
  std::string text;
  const auto head = [&](absl::string_view name, absl::string_view type, absl::string_view help) {
    absl::StrAppend(&text, "# HELP bowline_", name, " ", help, "\n# TYPE bowline_", name, " ", type, "\n");
  };
  const auto add = [&](absl::string_view name, absl::string_view type, absl::string_view help, auto value) {
    head(name, type, help);
    absl::StrAppend(&text, "bowline_", name, " ", value, "\n");
  };
  add("num_requests_running", "gauge", "Requests that are computed.", c.running);
  add("num_requests_waiting", "gauge", "Requests that wait.", c.waiting);
  if (c.blocks_total > 0) {
    const double usage = static_cast<double>(c.blocks_used) / static_cast<double>(c.blocks_total);
    add("kv_cache_usage_ratio", "gauge", "Part of the cache's blocks that requests use, from 0 to 1.", usage);
    add("num_preemptions_total", "counter", "Times that a request lost its blocks to another.", c.preemptions);
    add("prefix_cache_queries_total", "counter", "Tokens of prompts that the prefix cache was asked for.",
        c.prefix_queries);
    add("prefix_cache_hits_total", "counter", "Tokens of prompts that the prefix cache had.", c.prefix_hits);
  }
  add("prompt_tokens_total", "counter", "Tokens of prompts.", c.prompt_tokens);
  add("generation_tokens_total", "counter", "Tokens that were generated.", c.new_tokens);
  head("requests_ended_total", "counter", "Requests by how they ended.");
  for (const auto& [reason, count] : {std::pair<const char*, uint64_t>{"stop", c.stopped},
                                      {"length", c.length},
                                      {"abort", c.cancelled},
                                      {"error", c.failed}}) {
    absl::StrAppend(&text, "bowline_requests_ended_total{finished_reason=\"", reason, "\"} ", count, "\n");
  }
  const auto histogram = [&](absl::string_view name, absl::string_view help, const LatencyHistogram& values) {
    head(name, "histogram", help);
    uint64_t below = 0;
    for (size_t i = 0; i < values.counts.size(); ++i) {
      below += values.counts[i];
      const std::string end = i < LatencyHistogram::kEnds.size() ? absl::StrCat(LatencyHistogram::kEnds[i]) : "+Inf";
      absl::StrAppend(&text, "bowline_", name, "_bucket{le=\"", end, "\"} ", below, "\n");
    }
    absl::StrAppend(&text, "bowline_", name, "_sum ", values.sum, "\nbowline_", name, "_count ", below, "\n");
  };
  histogram("time_to_first_token_seconds", "From a request to the first token of an answer.", latencies.first_token);
  histogram("time_per_output_token_seconds", "From a token of an answer to the next.", latencies.between_tokens);
  histogram("e2e_request_latency_seconds", "From a request to the end of its answers.", latencies.whole);
  return text;
}

}  // namespace bowline::serve
