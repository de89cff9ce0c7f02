//===- CommunicationReport.h - messages of ranks ------------*- C++ -*-===//

#ifndef BOWLINE_CHECKER_COMMUNICATIONREPORT_H
#define BOWLINE_CHECKER_COMMUNICATIONREPORT_H

#include "runtime/plan/view/plan_view.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bowline {

/// Communications of one program with the same operation, source, pass and reason.
struct CommunicationGroup {
  std::string operation;  ///< "all_reduce on 'tp'", "send to place 1 of 'pp'"
  std::string axes;       ///< mesh axes of its communicator: "tp"; "dp, tp"
  std::string source;     ///< place in the model: "layers.*.mlp.down_proj", or "layers.3.mlp.down_proj"
  std::string pass;       ///< the pass that asked for it
  std::string reason;     ///< the purpose; empty where the plan does not say
  std::string tensors;    ///< the tensors of a single command: "layers.0.mlp.gate_proj.grad and 3 more"; else empty
  uint64_t count = 0;     ///< commands in one run of the entry
  uint64_t bytesSent = 0; ///< by one rank in one run of the entry
};

/// The communications of a rank of one role in a run of one entry.
struct CommunicationReport {
  std::vector<CommunicationGroup> groups; ///< sorted by bytesSent, the largest first
  struct Total {
    uint64_t count = 0;
    uint64_t bytesSent = 0;
  };
  std::map<std::string, Total> byAxes; ///< key: CommunicationGroup::axes
};

struct CommunicationReportOptions {
  /// The report has only communications with this text in their operation, source, pass, reason or a tensor's name.
  std::string containing;
  /// Layers that differ only in their numbers are one group, "layers.*"; otherwise each command is one of its own.
  bool mergesLayers = true;
};

/// Reports entry number `entry` of a verified plan. Bytes are those that a rank sends by algorithms that send the least
/// (Patarasuk and Yuan, 2009): for n ranks with a tensor of B bytes, before it is scattered or after it is gathered,
/// (n-1)/n B for gathers, scatters and all-to-all, and twice that for all-reduces; all B for a send, none for a
/// receive. Time grows with the commands that are stored, and neither with ranks nor with calls of segments.
CommunicationReport reportCommunication(const fbs::Plan &plan, uint32_t entry,
                                        const CommunicationReportOptions &options = {});

} // namespace bowline

#endif // BOWLINE_CHECKER_COMMUNICATIONREPORT_H
