//===- IndexCheck.cpp - numbers that say where a kernel reads -------------===//

#include "checker/IndexCheck.h"

#include "checker/Counterexample.h"
#include "checker/KernelSignature.h"
#include "kernels/registry/data_check.h"
#include "runtime/plan/view/plan_view.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace bowline {

IndexCheck::IndexCheck(const Timeline &timeline, uint32_t entry)
    : timeline_(timeline), plan_(timeline.plan()), entry_(entry) {
  const fbs::Entry &ports = *plan_.entries()->Get(entry);
  for (uint32_t i = 0; i < SizeOf(ports.inputs()); ++i)
    limits_[ports.inputs()->Get(i)->buffer()] = ports.inputs()->Get(i)->limit();
}

void IndexCheck::forget(ByteRange range) {
  auto checked = checked_.upper_bound(range.begin);
  if (checked != checked_.begin())
    --checked;
  while (checked != checked_.end() && checked->first < range.end)
    checked = checked->second.end > range.begin ? checked_.erase(checked) : std::next(checked);
}

/// Whether the arguments are there that say where rows are. The proof of signatures says so of known targets alone.
static bool hasRows(const kernels::DataCheck &check, const kernels::Signature &signature) {
  const std::vector<kernels::TensorSpec> &arguments = signature.arguments;
  if (check.argument >= arguments.size())
    return false;
  if (check.rows != kernels::kResult)
    return check.rows < arguments.size() && !arguments[check.rows].shape.empty();
  const auto result = std::find_if(arguments.begin(), arguments.end(), [](const kernels::TensorSpec &argument) {
    return argument.access == kernels::Access::kWrite;
  });
  return result != arguments.end() && !result->shape.empty();
}

absl::Status IndexCheck::checkLaunch(CommandSite site, const fbs::Launch &launch,
                                     absl::Span<const OperandAccess> accesses) {
  const fbs::Kernel &kernel = *plan_.kernels()->Get(launch.kernel());
  if (kernel.origin() != fbs::KernelOrigin::Registered)
    return absl::OkStatus();
  const std::string name = kernel.name()->str();
  const kernels::DataCheck *check = kernels::FindDataCheck(name);
  if (!check && !kernels::IsDataCheck(name))
    return absl::OkStatus();
  const kernels::Signature signature = signatureOf(plan_, kernel, /*hasScratch=*/false);
  if (check ? !hasRows(*check, signature) : signature.arguments.empty())
    return counterexample("indices", absl::StrCat(timeline_.describe(site), " lacks arguments of its kernel"));
  if (!check) {
    BOWLINE_ASSIGN_OR_RETURN(const int64_t rows, signature.Int("rows"));
    forget(accesses[0].range);
    if (!accesses[0].byRank) // the bytes of one rank among these are looked at
      checked_[accesses[0].range.begin] = {accesses[0].range.end, rows, name};
    return absl::OkStatus();
  }
  ++facts_;
  const OperandAccess &data = accesses[check->argument];
  const int64_t rows = kernels::RowsOfCheck(*check, signature);
  const auto checked = checked_.find(data.range.begin);
  if (checked != checked_.end() && checked->second.end >= data.range.end && checked->second.rows <= rows &&
      checked->second.kernel == check->kernel)
    return absl::OkStatus();
  const auto limit = limits_.find(data.buffer);
  const bool isInput = limit != limits_.end();
  const bool isLimited = isInput && check->is_row && limit->second > 0 && limit->second <= rows;
  if (isLimited || signature.Find(kernels::kInRange) != nullptr)
    return absl::OkStatus();
  return counterexample(
      "indices", absl::StrCat(timeline_.describe(site), " takes ", check->is_row ? "row numbers" : "offsets of rows",
                              " from ", timeline_.describe(data), " for ", rows, " rows, and nobody looks at them: ",
                              isInput ? absl::StrCat("callers give the input below ", limit->second)
                                      : std::string("they are computed, and no check of data is launched before"),
                              isInput && limit->second == 0 ? ", which is any number" : ""));
}

absl::Status IndexCheck::check() {
  absl::Status status;
  timeline_.forEachCommand(
      entry_, [&](CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses) {
        if (const fbs::Launch *launch = command.body_as_Launch())
          status = checkLaunch(site, *launch, accesses);
        for (const OperandAccess &access : accesses)
          if (access.writes)
            forget(access.range);
        return status.ok();
      });
  return status;
}

} // namespace bowline
