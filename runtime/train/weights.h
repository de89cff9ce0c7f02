#ifndef BOWLINE_RUNTIME_TRAIN_WEIGHTS_H_
#define BOWLINE_RUNTIME_TRAIN_WEIGHTS_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/executor/session.h"

namespace bowline {

// Says how to treat weights whose config.json describes another model than the plan's
// (runtime/train/model_config.h).
enum class OtherConfig {
  kRefuse,  // return an error, because the results would be those of no model
  kReport,  // only report it, because training adapts the weights
};

struct LoadedWeights {
  std::string directory;            // the directory or file with the weights
  int64_t tensors = 0;              // number of parameters filled: all those of the plan
  ExternalBytes external;           // bytes of parameters in memory space External
  std::vector<std::string> unused;  // tensors in the files that the plan does not use
  std::vector<std::string> config_differences;
  std::string checkpoint;  // latest checkpoint in the directory, if the directory's own weights were loaded instead
};

// Fills every parameter of the plan, in this rank's shards, from one of three sources. A Hugging Face directory has
// model.safetensors, or shards with an index. A checkpoint may be saved by any ranks; the directory of a training
// run stands for its latest checkpoint. In a GGUF file (*.gguf) blocks and the order of rows are converted to those
// of the parameter (runtime/base/gguf_model.h). Tensors are found by the plan's keys (runtime/base/weight_key.h)
// and converted from f64, f32, f16 or bf16 to the parameter's type, rounded to nearest even. A parameter in memory
// space External is used where the file is mapped, for as long as the session lives, if it has the parameter's type
// and alignment there, the rank's shard is contiguous, and the device reads host memory. Otherwise it is copied as
// well.
//
// Returns kNotFound when there are no weights. Before changing any parameter, returns kFailedPrecondition naming every
// tensor that is missing, has another shape or an unsuitable type, or would be ignored although it belongs to a model:
// any but buffers of old files and the head of tied embeddings. If the plan has no config.json, as for a .mlir model,
// ignored tensors are only reported.
absl::StatusOr<LoadedWeights> LoadWeights(Session& session, const std::string& directory,
                                          OtherConfig other_config = OtherConfig::kRefuse);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_WEIGHTS_H_
