#include "runtime/serve/metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace bowline::serve {
namespace {

class MetricsText {
 public:
  explicit MetricsText(const std::string& model)
      : model_(absl::StrCat("model_name=\"",
                            absl::StrReplaceAll(model, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"")) {}

  void Head(absl::string_view name, absl::string_view type, absl::string_view help) {
    absl::StrAppend(&text_, "# HELP bowline_", name, " ", help, "\n");
    if (!type.empty()) absl::StrAppend(&text_, "# TYPE bowline_", name, " ", type, "\n");
  }
  // `labels` beside the model's name, with a comma before.
  template <typename Number>
  void Line(absl::string_view name, absl::string_view labels, Number value) {
    absl::StrAppend(&text_, "bowline_", name, "{", model_, labels, "} ", value, "\n");
  }
  template <typename Number>
  void Add(absl::string_view name, absl::string_view type, absl::string_view help, Number value) {
    Head(name, type, help);
    Line(name, "", value);
  }
  void AddHistogram(absl::string_view name, absl::string_view help, const Histogram& values) {
    Head(name, "histogram", help);
    const uint64_t count = Buckets(name, values);
    Line(absl::StrCat(name, "_sum"), "", values.sum);
    Line(absl::StrCat(name, "_count"), "", count);
  }
  // A histogram whose name says that it is a counter, so that its lines have no type.
  void AddLinesOfHistogram(absl::string_view name, absl::string_view help, const Histogram& values) {
    Head(absl::StrCat(name, "_bucket"), "", help);
    const uint64_t count = Buckets(name, values);
    Add(absl::StrCat(name, "_sum"), "", help, values.sum);
    Add(absl::StrCat(name, "_count"), "", help, count);
  }

  std::string Take() { return std::move(text_); }

 private:
  // Gives the number of values.
  uint64_t Buckets(absl::string_view name, const Histogram& values) {
    const std::string bucket = absl::StrCat(name, "_bucket");
    uint64_t below = 0;
    for (size_t i = 0; i < values.counts.size(); ++i) {
      below += values.counts[i];
      const std::string end = i < values.ends.size() ? absl::StrCat(values.ends[i]) : "+Inf";
      Line(bucket, absl::StrCat(",le=\"", end, "\""), below);
    }
    return below;
  }

  const std::string model_;
  std::string text_;
};

void AddLatencies(const Latencies::Values& values, MetricsText* text) {
  text->AddHistogram("time_to_first_token_seconds", "From a request to the first token of an answer.",
                     values.first_token);
  text->AddHistogram("inter_token_latency_seconds", "From a token of an answer to the next.", values.between_tokens);
  text->AddHistogram("request_time_per_output_token_seconds", "The mean of these times, of each answer.",
                     values.per_token);
  text->AddHistogram("e2e_request_latency_seconds", "From a request to the end of its answers.", values.whole);
  text->AddHistogram("request_queue_time_seconds", "An answer's time until its first step.", values.queue);
  text->AddHistogram("request_prefill_time_seconds", "From an answer's first step to its first token.", values.prefill);
  text->AddHistogram("request_decode_time_seconds", "From an answer's first token to its last.", values.decode);
  text->AddHistogram("request_inference_time_seconds", "From an answer's first step to its last token.",
                     values.inference);
  text->AddHistogram("request_prompt_tokens", "Tokens of the prompt of each answer.", values.prompt_tokens);
  text->AddHistogram("request_generation_tokens", "Tokens of each answer.", values.new_tokens);
  text->AddHistogram("request_max_num_generation_tokens", "Tokens of the longest answer of each request.",
                     values.most_new_tokens);
}

}  // namespace

std::string WriteMetrics(const std::string& model, const EngineCounts& c, const Latencies::Values& latencies) {
  MetricsText text(model);
  text.Add("num_requests_running", "gauge", "Requests that are computed.", c.running);
  text.Add("num_requests_waiting", "gauge", "Requests that wait.", c.waiting);
  if (c.blocks_total > 0) {
    const double usage = static_cast<double>(c.blocks_used) / static_cast<double>(c.blocks_total);
    text.Add("kv_cache_usage_perc", "gauge", "Part of the cache's blocks that requests use, from 0 to 1.", usage);
    text.Add("num_preemptions_total", "counter", "Times that a request lost its blocks to another.", c.preemptions);
    text.Add("prefix_cache_queries_total", "counter", "Tokens of prompts that the prefix cache was asked for.",
             c.prefix_queries);
    text.Add("prefix_cache_hits_total", "counter", "Tokens of prompts that the prefix cache had.", c.prefix_hits);
    text.AddLinesOfHistogram("iteration_tokens_total", "Tokens that each step computed.", c.step_tokens);
  }
  text.Add("prompt_tokens_total", "counter", "Tokens of prompts.", c.prompt_tokens);
  text.Add("generation_tokens_total", "counter", "Tokens that were generated.", c.new_tokens);
  text.Head("request_success_total", "counter", "Answers by how they ended.");
  for (const auto& [reason, count] : {std::pair<const char*, uint64_t>{"stop", c.stopped},
                                      {"length", c.length},
                                      {"abort", c.cancelled},
                                      {"error", c.failed}}) {
    text.Line("request_success_total", absl::StrCat(",finished_reason=\"", reason, "\""), count);
  }
  AddLatencies(latencies, &text);
  return text.Take();
}

}  // namespace bowline::serve
