#include "runtime/train/tensors/trainer_state.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/json.h"

namespace bowline {
namespace {

using nlohmann::json;

constexpr int kStateVersion = 1;

// Of names that go into paths and messages.
bool IsPlainName(absl::string_view text, absl::string_view others) {
  constexpr size_t kMaxName = 64;
  return !text.empty() && text.size() <= kMaxName && std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains(others, c);
  });
}

// Of a "recipe", as a clause behind the key; empty if it is one.
std::string MistakeOfRecipe(const json& recipe) {
  if (!recipe.is_object()) return "should be an object";
  for (const auto& [name, value] : recipe.items()) {
    if (!IsPlainName(name, "-_.")) {
      return absl::StrCat("has the name \"", absl::CHexEscape(name.substr(0, 64)), "\", which is none of a setting");
    }
    if (!value.is_number() && !value.is_string()) {
      return absl::StrCat("has for \"", name, "\" neither a number nor a text");
    }
  }
  return "";
}

}  // namespace

// The files of a checkpoint have a digest of this text (file_metadata.h): a field that earlier checkpoints lack is left
// out where it is empty, or those would be refused.
std::string TrainerStateToJson(const TrainerState& state) {
  nlohmann::ordered_json object;
  object["version"] = kStateVersion;
  object["step"] = state.step;
  object["seed"] = state.seed;
  object["order"] = std::string(NameOf(state.order));
  object["next_draw"] = state.next_draw;
  object["data_tokens"] = state.data_tokens;
  object["data_digest"] = state.data_digest;
  object["data_names"] = state.data_names;
  object["plan"] = state.plan;
  if (state.batch != 0) object["batch"] = state.batch;
  if (state.sequence != 0) object["sequence"] = state.sequence;
  if (!state.run.empty()) object["run"] = state.run;
  // As it is: a text that is no JSON is no recipe of a plan, which was checked.
  if (!state.recipe.empty()) object["recipe"] = nlohmann::ordered_json::parse(state.recipe, nullptr, false);
  if (!state.unwritten_metrics.empty()) object["unwritten_metrics"] = state.unwritten_metrics;
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::StatusOr<TrainerState> ReadTrainerState(const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(const json object, ReadJsonFile(path, /*max_bytes=*/1 << 20));
  const auto error = [&](absl::string_view key, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "': \"", key, "\" ", what));
  };
  const auto read_count = [&](const char* key, auto* value) -> absl::Status {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_unsigned()) return error(key, "should be an integer from 0 on");
    using T = std::remove_pointer_t<decltype(value)>;
    if (found->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<T>::max()))
      return error(key, "is too large");
    *value = found->get<T>();
    return absl::OkStatus();
  };
  const auto read_text = [&](const char* key, std::string* value) -> absl::Status {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return error(key, "should be a string");
    *value = found->get_ref<const std::string&>();
    return absl::OkStatus();
  };
  if (!object.is_object()) return absl::InvalidArgumentError(absl::StrCat("'", path, "' should hold a JSON object"));
  int64_t version = 0;
  BOWLINE_RETURN_IF_ERROR(read_count("version", &version));
  if (version != kStateVersion) {
    // No damage.
    return absl::FailedPreconditionError(absl::StrCat("'", path, "' has version ", version, "; supported is ",
                                                      kStateVersion, "; resume with the Bowline that saved it"));
  }
  TrainerState state;
  std::string order;
  BOWLINE_RETURN_IF_ERROR(read_count("step", &state.step));
  BOWLINE_RETURN_IF_ERROR(read_count("seed", &state.seed));
  BOWLINE_RETURN_IF_ERROR(read_count("next_draw", &state.next_draw));
  BOWLINE_RETURN_IF_ERROR(read_count("data_tokens", &state.data_tokens));
  BOWLINE_RETURN_IF_ERROR(read_text("plan", &state.plan));
  BOWLINE_RETURN_IF_ERROR(read_text("order", &order));
  // Earlier checkpoints lack these.
  for (const auto& [key, value] : {std::pair{"batch", &state.batch}, std::pair{"sequence", &state.sequence}}) {
    if (!object.contains(key)) continue;
    BOWLINE_RETURN_IF_ERROR(read_count(key, value));
    if (*value == 0) return error(key, "should be an integer from 1 on");
  }
  if (object.contains("data_digest")) BOWLINE_RETURN_IF_ERROR(read_text("data_digest", &state.data_digest));
  if (!IsPlainName(state.data_digest, "") && !state.data_digest.empty()) {
    return error("data_digest", "should be a digest in letters and digits");
  }
  if (object.contains("data_names")) BOWLINE_RETURN_IF_ERROR(read_text("data_names", &state.data_names));
  if (object.contains("run")) {
    BOWLINE_RETURN_IF_ERROR(read_text("run", &state.run));
    if (!IsPlainName(state.run, "-_")) return error("run", "should be 1 to 64 letters, digits, '-' and '_'");
  }
  if (const auto recipe = object.find("recipe"); recipe != object.end()) {
    const std::string mistake = MistakeOfRecipe(*recipe);
    if (!mistake.empty()) return error("recipe", mistake);
    state.recipe = recipe->dump(-1, ' ', false, json::error_handler_t::replace);
  }
  if (const auto lines = object.find("unwritten_metrics"); lines != object.end()) {
    const auto is_text = [](const json& line) { return line.is_string(); };
    if (!lines->is_array() || !std::all_of(lines->begin(), lines->end(), is_text)) {
      return error("unwritten_metrics", "should be a list of strings");
    }
    state.unwritten_metrics = lines->get<std::vector<std::string>>();
  }
  const absl::StatusOr<DataOrder> parsed = DataOrderFromName(order);
  if (!parsed.ok()) return error("order", parsed.status().message());
  state.order = *parsed;
  return state;
}

}  // namespace bowline
