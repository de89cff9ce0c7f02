#include "kernels/registry/data_check.h"

#include <algorithm>

namespace bowline::kernels {

int64_t RowsOfCheck(const DataCheck& check, const Signature& signature) {
  const auto is_written = [](const TensorSpec& argument) { return argument.access == Access::kWrite; };
  const auto rows = check.rows == kResult
                        ? std::find_if(signature.arguments.begin(), signature.arguments.end(), is_written)
                        : signature.arguments.begin() + static_cast<std::ptrdiff_t>(check.rows);
  return rows->shape[0];
}

Signature SignatureOfCheck(const DataCheck& check, const Signature& signature) {
  Signature result;
  result.kernel = std::string(check.kernel);
  result.threads = signature.threads;
  // No i32 is beyond more.
  result.attributes.push_back({"rows", {std::min<int64_t>(RowsOfCheck(check, signature), INT32_MAX)}, {}, ""});
  result.arguments.push_back(signature.arguments[check.argument]);
  result.arguments.push_back({Access::kReadWrite, DType::kI32, {kFaultWords}});
  return result;
}

}  // namespace bowline::kernels
