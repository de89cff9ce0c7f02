// Any bytes as a config.json: an error that names the file, or a configuration whose sizes keep their promises.

#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "frontends/hf/Family.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config =
      bowline::hf::parseConfig(absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz/config.json");
  if (!config.ok()) {
    if (!absl::StrContains(config.status().message(), "fuzz/config.json")) std::abort();
    return 0;
  }
  for (const int64_t value : {config->vocabulary, config->hidden, config->layers, config->heads, config->kvHeads,
                              config->headDim, config->intermediate, config->maxPositions}) {
    if (value < 1 || value > int64_t{1} << 30) std::abort();
  }
  if (config->architecture == nullptr) std::abort();
  if (config->heads % config->kvHeads != 0) std::abort();
  const bool rotary = config->family->name != "gpt2";
  if (rotary ? config->headDim % 2 != 0 : config->heads * config->headDim != config->hidden) std::abort();
  if (!(config->normEpsilon > 0) || !(config->initializerRange >= 0)) std::abort();
  if (rotary && !(config->ropeTheta > 0)) std::abort();
  return 0;
}
