#include "absl/strings/str_cat.h"
#include "runtime/base/npy.h"
#include "runtime/train/data/dataset_formats.h"

namespace bowline {

absl::StatusOr<TokenArray> ParseNpyTokens(absl::Span<const uint8_t> file, const std::string& name) {
  BOWLINE_ASSIGN_OR_RETURN(const NpyView view,
                           ParseNpy(file, name,
                                    {ElementType::kU8, ElementType::kI8, ElementType::kU16, ElementType::kI16,
                                     ElementType::kU32, ElementType::kI32, ElementType::kU64, ElementType::kI64}));
  if (view.shape.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "': the .npy array has ", view.shape.size(),
                                                   " dimensions, and tokens need one; flatten it with ravel()"));
  }
  return TokenArray{"npy", view.type, view.data};
}

}  // namespace bowline
