#ifndef BOWLINE_RUNTIME_TRAIN_WEIGHTS_H_
#define BOWLINE_RUNTIME_TRAIN_WEIGHTS_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/executor/session.h"

namespace bowline {

// Says whether to refuse weights whose config.json describes another model than the plan's does
// (runtime/train/model_config.h).
enum class OtherConfig {
  kRefuse,  // results would be those of no model
  kReport,  // training adapts the weights
};

struct LoadedWeights {
  std::string directory;            // the directory that they came from
  int64_t tensors = 0;              // the number of parameters that were filled: all of the plan
  ExternalBytes external;           // the bytes of parameters in memory space External
  std::vector<std::string> unused;  // tensors on disk that the plan has no use for
  std::vector<std::string> config_differences;
  std::string checkpoint;  // the latest of those beside weights in the directory, which were taken; empty without any
};

// Fills the shards of the session's rank of every parameter of the plan from a Hugging Face directory:
// model.safetensors, or shards with their index; or from a checkpoint, whatever ranks saved it. A directory that
// training saved checkpoints into stands for its latest checkpoint. Or from a GGUF file (*.gguf), whose blocks and
// order of rows become those of the parameter (runtime/base/gguf_model.h). Tensors are found by the plan's keys
// (runtime/base/weight_key.h) and converted from f64, f32, f16 or bf16 to the parameter's type, to nearest even. A
// parameter in memory space External is read where it is in the file, which stays mapped as long as the session, if it
// has the parameter's type and alignment there, the rank's shard is contiguous, and the device reads memory of the
// host; otherwise it is copied too.
//
// kNotFound when there are no weights. kFailedPrecondition, before any parameter is touched, naming every tensor that
// is missing or has another shape or an unsuitable type, or that the plan would ignore although it belongs to a model:
// any but buffers of old files and the head of tied embeddings. Where the plan has no config.json, as those of a .mlir
// model, ignored tensors are only reported.
absl::StatusOr<LoadedWeights> LoadWeights(Session& session, const std::string& directory,
                                          OtherConfig other_config = OtherConfig::kRefuse);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_WEIGHTS_H_
