#ifndef BOWLINE_RUNTIME_SERVE_METRICS_H_
#define BOWLINE_RUNTIME_SERVE_METRICS_H_

#include <string>

#include "runtime/serve/engine.h"

namespace bowline::serve {

// The counts in Prometheus' text format.
std::string WriteMetrics(const EngineCounts& counts);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_METRICS_H_
