#include "runtime/hal/communicator.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace bowline::hal {
namespace {

// The most bytes of all pieces of all members together, so that no product or sum overflows.
constexpr uint64_t kMaxBytes = uint64_t{1} << 60;

}  // namespace

absl::Status CheckOperation(const Exchange& exchange, const Operation& operation, absl::Span<const Piece> pieces) {
  const int self = exchange.self(), size = exchange.size();
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("communicator '", exchange.name(), "', rank ",
                                                   exchange.ranks()[static_cast<size_t>(self)], ": ", why));
  };
  if (operation.concerns_two() && (operation.peer < 0 || operation.peer >= size || operation.peer == self)) {
    return refuse(absl::StrCat("member ", self, " of ", size, " has no peer ", operation.peer));
  }
  if (const collectives::Definition* collective = operation.collective()) {
    const uint64_t least = collective->LeastParameter(), most = collective->MostParameter(static_cast<uint64_t>(size));
    if (operation.parameter < least || operation.parameter > most) {
      return refuse(absl::StrCat(collective->name, " has no ", collectives::WordsOf(collective->parameter).name, " ",
                                 operation.parameter, " among ", size, " members"));
    }
  }
  if (operation.reduces() && !CanReduce(operation.dtype)) {
    return refuse(absl::StrCat(NameOf(operation.dtype), " cannot be reduced; ", NamesOf(&CanReduce), " can"));
  }
  if (SizeOf(operation.dtype) == 0) {
    return refuse(absl::StrCat(NameOf(operation.dtype), " cannot be moved: its elements are not stored one by one"));
  }
  const uint64_t limit = kMaxBytes / static_cast<uint64_t>(size) / SizeOf(operation.dtype);
  uint64_t total = 0;
  for (const Piece& piece : pieces) {
    if (piece.count > limit - total) return refuse("more bytes than any machine has");
    total += piece.count;
    if (piece.count == 0) continue;
    if (operation.SendParts(size) > 0 && piece.send == 0) return refuse("nothing to send from");
    if (operation.ReceiveParts(size) > 0 && piece.receive == 0) return refuse("nowhere to receive to");
  }
  return absl::OkStatus();
}

}  // namespace bowline::hal
