//===- SequenceCheck.cpp - kernels that read where sequences are ----------===//

#include "checker/SequenceCheck.h"

#include "checker/Counterexample.h"
#include "kernels/registry/sequence_operands.h"
#include "runtime/plan/view/plan_view.h"

#include "absl/strings/str_cat.h"

namespace bowline {

SequenceCheck::SequenceCheck(const Timeline &timeline, uint32_t entry)
    : timeline_(timeline), plan_(timeline.plan()), entry_(entry), sequences_(plan_.entries()->Get(entry)->sequences()) {
}

absl::Status SequenceCheck::checkInput(CommandSite site, const OperandAccess &access, uint32_t input,
                                       const char *what) {
  ++facts_;
  const fbs::Port &port = *plan_.entries()->Get(entry_)->inputs()->Get(input);
  const fbs::Buffer &buffer = *plan_.buffers()->Get(port.buffer());
  if (access.buffer == port.buffer() && access.range == RangeOf(buffer, 0))
    return absl::OkStatus();
  return counterexample("sequences",
                        absl::StrCat(timeline_.describe(site), " takes ", timeline_.describe(access), " for the ", what,
                                     " of sequences, but callers promise them in input ", Quoted(port.name())));
}

absl::Status SequenceCheck::checkLaunch(CommandSite site, const fbs::Launch &launch,
                                        absl::Span<const OperandAccess> accesses) {
  const fbs::Kernel &kernel = *plan_.kernels()->Get(launch.kernel());
  if (kernel.origin() != fbs::KernelOrigin::Registered)
    return absl::OkStatus();
  const absl::string_view name = TextOf(kernel.name());
  const kernels::SequenceOperands *operands = kernels::FindSequenceOperands({name.data(), name.size()});
  if (!operands)
    return absl::OkStatus();
  if (!sequences_)
    return counterexample("sequences", absl::StrCat(timeline_.describe(site),
                                                    " reads the places of sequences, but callers of the entry make no "
                                                    "promise about them"));
  const auto shape = [&](uint32_t argument) { return kernel.arguments()->Get(argument)->shape(); };
  const auto fails = [&](const char *what, int64_t promised, int64_t own) {
    return counterexample("sequences", absl::StrCat(timeline_.describe(site), " has ", own, " ", what,
                                                    ", and callers of the entry promise values for ", promised));
  };
  // The signature of a kernel has these arguments and dimensions, or no device accepts it.
  const size_t count = SizeOf(kernel.arguments());
  for (const uint32_t argument :
       {operands->rows, operands->lengths, operands->step, operands->blocks.value_or(0), operands->cache.value_or(0)})
    if (argument >= count || argument >= accesses.size() || SizeOf(shape(argument)) == 0)
      return counterexample("sequences", absl::StrCat(timeline_.describe(site), " lacks arguments of its kernel"));
  BOWLINE_RETURN_IF_ERROR(checkInput(site, accesses[operands->rows], sequences_->rows(), "rows"));
  BOWLINE_RETURN_IF_ERROR(checkInput(site, accesses[operands->lengths], sequences_->lengths(), "lengths"));
  if (shape(operands->step)->Get(0) < static_cast<int64_t>(sequences_->tokens()))
    return fails("rows", sequences_->tokens(), shape(operands->step)->Get(0));
  if (!operands->blocks)
    return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(checkInput(site, accesses[*operands->blocks], sequences_->blocks(), "blocks"));
  const auto *cache = shape(*operands->cache);
  if (SizeOf(cache) < 2 || cache->Get(1) != static_cast<int64_t>(sequences_->block_tokens()))
    return fails("tokens of a block", sequences_->block_tokens(), SizeOf(cache) < 2 ? 0 : cache->Get(1));
  if (cache->Get(0) < static_cast<int64_t>(sequences_->block_count()))
    return fails("blocks of a cache", sequences_->block_count(), cache->Get(0));
  return absl::OkStatus();
}

absl::Status SequenceCheck::check() {
  absl::Status status;
  timeline_.forEachCommand(
      entry_, [&](CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses) {
        if (const fbs::Launch *launch = command.body_as_Launch())
          status = checkLaunch(site, *launch, accesses);
        return status.ok();
      });
  return status;
}

} // namespace bowline
