//===- ConfigKeys.h - Keys of config.json that are not sizes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_CONFIGKEYS_H
#define BOWLINE_FRONTENDS_HF_CONFIGKEYS_H

#include "absl/strings/string_view.h"
#include "frontends/hf/Family.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace bowline::hf {

/// The fixed keys of the family and those of all families.
std::vector<FixedKey> fixedKeys(const Family &family);

/// True for a key that does not change the function of a model of the family from tokens to logits.
bool isHarmlessKey(const Family &family, absl::string_view key);

/// True where the key's value says that a feature, which no family here has, is off: the model computes the same
/// without the key. Keys that a family reads itself are not asked for.
bool isNeutral(absl::string_view key, const nlohmann::json &value);

/// True where the key's value asks for another way to compute the same function, such as `pretraining_tp` = 2, which
/// the compiler does not follow.
bool choosesOtherExecution(absl::string_view key, const nlohmann::json &value);

/// True for the name of an attribute that libraries keep for themselves (`_num_labels`): no model reads one.
bool isPrivateKey(absl::string_view key);

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_CONFIGKEYS_H
