#ifndef BOWLINE_RUNTIME_SERVE_METRICS_H_
#define BOWLINE_RUNTIME_SERVE_METRICS_H_

#include <string>

#include "runtime/serve/engine.h"
#include "runtime/serve/request_record.h"

namespace bowline::serve {

// The counts, and the latencies as histograms, in Prometheus' text format: vLLM's names, with "bowline_" for "vllm:",
// and its label model_name.
std::string WriteMetrics(const std::string& model, const EngineCounts& counts, const Latencies::Values& latencies);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_METRICS_H_
