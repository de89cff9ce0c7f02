#include "runtime/train/tensors/shard_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/json.h"
#include "runtime/base/safetensors_writer.h"

namespace bowline {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr uint64_t kVersion = 1;
constexpr int64_t kMaxRanks = int64_t{1} << 24;
constexpr size_t kMaxAxes = 16, kMaxDimensions = 64;
constexpr size_t kMaxBytes = size_t{256} << 20;

absl::string_view SectionOf(CheckpointRole role) {
  return role == CheckpointRole::kParameter ? "parameters" : "optimizer";
}

ordered_json AxisNames(const RankMesh& mesh, const std::vector<uint32_t>& axes) {
  ordered_json names = ordered_json::array();
  for (const uint32_t axis : axes) names.push_back(mesh.axes[axis].name);
  return names;
}

ordered_json TensorToJson(const RankMesh& mesh, const CheckpointTensor& tensor) {
  ordered_json object;
  object["dtype"] = std::string(InfoOf(tensor.type).safetensors);
  object["shape"] = tensor.shape;
  const Sharding& sharding = tensor.sharding;
  if (!sharding.view.empty()) object["view"] = sharding.view;
  const auto shards = [](const std::vector<uint32_t>& axes) { return !axes.empty(); };
  if (std::any_of(sharding.dim_shardings.begin(), sharding.dim_shardings.end(), shards)) {
    object["cuts"] = ordered_json::array();
    for (const std::vector<uint32_t>& axes : sharding.dim_shardings) object["cuts"].push_back(AxisNames(mesh, axes));
  }
  if (!sharding.flat.empty()) object["flat"] = AxisNames(mesh, sharding.flat);
  if (mesh.role_axis >= 0) object["role"] = sharding.role;
  return object;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  absl::StatusOr<ShardIndex> Read(const json& root) {
    if (!root.is_object()) return Error("should hold a JSON object");
    const json* version = Find(root, "version");
    if (version == nullptr || !version->is_number_unsigned()) return Error("\"version\" should be an integer");
    if (version->get<uint64_t>() != kVersion) {
      return Error(absl::StrCat("has version ", version->get<uint64_t>(), "; supported is ", kVersion,
                                "; load it with the Bowline that saved it"));
    }
    const json* step = Find(root, "step");
    if (step == nullptr || !step->is_number_unsigned() || step->get<uint64_t>() > INT64_MAX) {
      return Error("\"step\" should be an integer from 0 on");
    }
    index_.step = step->get<int64_t>();
    BOWLINE_RETURN_IF_ERROR(ReadMesh(root));
    for (const CheckpointRole role : {CheckpointRole::kParameter, CheckpointRole::kOptimizer}) {
      const json* section = Find(root, SectionOf(role));
      if (section == nullptr || !section->is_object()) {
        return Error(absl::StrCat("\"", SectionOf(role), "\" should be an object"));
      }
      for (const auto& [key, value] : section->items()) BOWLINE_RETURN_IF_ERROR(ReadTensor(role, key, value));
    }
    return std::move(index_);
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path_, "': ", what, "; the checkpoint is damaged, load another"));
  }

  static const json* Find(const json& object, absl::string_view key) {
    const auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
  }

  absl::Status ReadMesh(const json& root) {
    const json* mesh = Find(root, "mesh");
    if (mesh == nullptr || !mesh->is_array() || mesh->size() > kMaxAxes) {
      return Error(absl::StrCat("\"mesh\" should be an array of at most ", kMaxAxes, " axes"));
    }
    for (const json& axis : *mesh) {
      const json* name = axis.is_object() ? Find(axis, "axis") : nullptr;
      const json* size = axis.is_object() ? Find(axis, "size") : nullptr;
      if (name == nullptr || !name->is_string() || size == nullptr || !size->is_number_unsigned()) {
        return Error("\"mesh\": each axis should have \"axis\", a string, and \"size\", an integer");
      }
      const uint64_t extent = size->get<uint64_t>();
      if (extent == 0 || extent > static_cast<uint64_t>(kMaxRanks) ||
          index_.mesh.ranks() * static_cast<int64_t>(extent) > kMaxRanks) {
        return Error(absl::StrCat("\"mesh\" should have 1 to ", kMaxRanks, " ranks"));
      }
      if (AxisOf(*name) >= 0) return Error(absl::StrCat("\"mesh\" has two axes '", name->get<std::string>(), "'"));
      index_.mesh.axes.push_back({name->get<std::string>(), static_cast<uint32_t>(extent)});
    }
    const json* role_axis = Find(root, "role_axis");
    if (role_axis == nullptr) return absl::OkStatus();
    index_.mesh.role_axis = AxisOf(*role_axis);
    return index_.mesh.role_axis >= 0 ? absl::OkStatus() : Error("\"role_axis\" should be the name of an axis");
  }

  // -1 when there is none.
  int AxisOf(const json& name) const {
    if (!name.is_string()) return -1;
    const auto& axes = index_.mesh.axes;
    const auto found = std::find_if(axes.begin(), axes.end(),
                                    [&](const auto& axis) { return axis.name == name.get_ref<const std::string&>(); });
    return found == axes.end() ? -1 : static_cast<int>(found - axes.begin());
  }

  absl::Status ReadTensor(CheckpointRole role, const std::string& key, const json& value) {
    const auto error = [&](absl::string_view what) {
      return Error(absl::StrCat("tensor '", key, "' of \"", SectionOf(role), "\": ", what));
    };
    if (!value.is_object()) return error("should be an object");
    const json* dtype = Find(value, "dtype");
    std::optional<ElementType> type;
    if (dtype != nullptr && dtype->is_string()) {
      type = ElementTypeFromSafetensors(dtype->get_ref<const std::string&>());
    }
    if (!type) return error(absl::StrCat("\"dtype\" should be one of ", SafetensorsTypeNames()));
    std::vector<int64_t> shape;
    const json* sizes = Find(value, "shape");
    if (sizes == nullptr || !ReadSizes(*sizes, &shape)) return error("\"shape\" should be an array of sizes");
    if (const auto bytes = TensorBytes(*type, shape); !bytes.ok()) return error(bytes.status().message());

    Sharding sharding;
    if (const json* view = Find(value, "view"); view != nullptr && !ReadSizes(*view, &sharding.view)) {
      return error("\"view\" should be an array of sizes");
    }
    if (const json* dims = Find(value, "cuts"); dims != nullptr) {
      if (!dims->is_array() || dims->size() > kMaxDimensions) return error("\"cuts\" should be an array");
      for (const json& axes : *dims) {
        if (!ReadAxes(axes, &sharding.dim_shardings.emplace_back()))
          return error("\"cuts\" should hold arrays of axes");
      }
    }
    if (const json* flat = Find(value, "flat"); flat != nullptr && !ReadAxes(*flat, &sharding.flat)) {
      return error("\"flat\" should be an array of axes");
    }
    if (const json* of = Find(value, "role"); of != nullptr) {
      if (!of->is_number_unsigned() || of->get<uint64_t>() >= static_cast<uint64_t>(kMaxRanks)) {
        return error("\"role\" should be an integer from 0 on");
      }
      sharding.role = of->get<uint32_t>();
    }
    absl::StatusOr<ShardedTensor> sharded = ShardedTensor::Create(index_.mesh, shape, sharding);
    if (!sharded.ok()) return error(sharded.status().message());
    index_.tensors.push_back({key, role, *type, std::move(shape), *std::move(sharded)});
    return absl::OkStatus();
  }

  static bool ReadSizes(const json& value, std::vector<int64_t>* sizes) {
    if (!value.is_array() || value.size() > kMaxDimensions) return false;
    for (const json& size : value) {
      if (!size.is_number_unsigned() || size.get<uint64_t>() > INT64_MAX) return false;
      sizes->push_back(size.get<int64_t>());
    }
    return true;
  }

  bool ReadAxes(const json& value, std::vector<uint32_t>* axes) const {
    if (!value.is_array()) return false;
    for (const json& name : value) {
      const int axis = AxisOf(name);
      if (axis < 0) return false;
      axes->push_back(static_cast<uint32_t>(axis));
    }
    return true;
  }

  const std::string& path_;
  ShardIndex index_;
};

}  // namespace

std::string ShardFileName(CheckpointRole role, int64_t rank) {
  return absl::StrFormat("%s.rank-%05d.safetensors", SectionOf(role), rank);
}

std::string ShardIndexToJson(int64_t step, const RankMesh& mesh, absl::Span<const CheckpointTensor> tensors) {
  ordered_json root;
  root["version"] = kVersion;
  root["step"] = step;
  root["mesh"] = ordered_json::array();
  for (const RankMesh::Axis& axis : mesh.axes) root["mesh"].push_back({{"axis", axis.name}, {"size", axis.size}});
  if (mesh.role_axis >= 0) root["role_axis"] = mesh.axes[mesh.role_axis].name;
  for (const CheckpointRole role : {CheckpointRole::kParameter, CheckpointRole::kOptimizer}) {
    ordered_json section = ordered_json::object();
    for (const CheckpointTensor& tensor : tensors) {
      if (tensor.role != role || !tensor.is_saved) continue;
      // Assigning by key would search all earlier keys of an ordered object.
      section.get_ref<ordered_json::object_t&>().emplace_back(tensor.key, TensorToJson(mesh, tensor));
    }
    root[std::string(SectionOf(role))] = std::move(section);
  }
  return root.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

absl::StatusOr<ShardIndex> ReadShardIndex(const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(const json root, ReadJsonFile(path, kMaxBytes));
  return Reader(path).Read(root);
}

absl::StatusOr<ShardIndex> ShardIndexFromJson(absl::string_view text, const std::string& name) {
  BOWLINE_ASSIGN_OR_RETURN(const json root, ParseJson(text, absl::StrCat("'", name, "'")));
  return Reader(name).Read(root);
}

}  // namespace bowline
