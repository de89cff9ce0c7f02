#ifndef BOWLINE_RUNTIME_SERVE_METRICS_H_
#define BOWLINE_RUNTIME_SERVE_METRICS_H_

#include <string>

#include "runtime/serve/engine.h"
#include "runtime/serve/request_record.h"

namespace bowline::serve {

// Writes the counts and the latency histograms in Prometheus' text format. The names are vLLM's, with "bowline_" in
// place of "vllm:"; the label is vLLM's model_name.
std::string WriteMetrics(const std::string& model, const EngineCounts& counts, const Latencies::Values& latencies);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_METRICS_H_
