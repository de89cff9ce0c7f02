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
#include "absl/types/span.h"
#include "frontends/hf/ModelConfig.h"

#include <vector>

namespace bowline::hf {

/// A key whose mathematics is implemented for some values only. An absent key means the first of them.
struct FixedKey {
  absl::string_view key;
  std::vector<absl::string_view> supported; // JSON texts
};

/// Keys that a family, or a model derived from it, may give a meaning that is not implemented.
absl::Span<const FixedKey> fixedKeys(Family family);

/// Dropout rates: read, and reported where they are not zero, because training uses no dropout.
absl::Span<const absl::string_view> dropoutKeys(Family family);

/// True for a key that does not change what the model computes from tokens to logits.
bool isHarmlessKey(Family family, absl::string_view key);

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_CONFIGKEYS_H
