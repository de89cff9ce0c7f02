//===- CommunicationReport.h - messages of ranks ------------*- C++ -*-===//

#ifndef BOWLINE_CHECKER_COMMUNICATIONREPORT_H
#define BOWLINE_CHECKER_COMMUNICATIONREPORT_H

#include "runtime/plan/view/plan_view.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bowline {

/// All communications of one program that have the same operation, source, pass and reason.
struct CommunicationGroup {
  std::string operation;  ///< "all_reduce on 'tp'", "send to place 1 of 'pp'"
  std::string axes;       ///< mesh axes of the communicator: "tp"; "dp, tp"
  std::string source;     ///< place in the model: "layers.*.mlp.down_proj", or "layers.3.mlp.down_proj"
  std::string pass;       ///< the compiler pass that inserted it
  std::string reason;     ///< the purpose; empty where the plan does not say
  std::string tensors;    ///< "layers.0.mlp.gate_proj.grad and 3 more"; empty unless the group has one command
  uint64_t count = 0;     ///< number of commands in one run of the entry
  uint64_t bytesSent = 0; ///< bytes that one rank sends in one run of the entry
};

/// The communications of one rank of one role in one run of an entry.
struct CommunicationReport {
  std::vector<CommunicationGroup> groups; ///< sorted by bytesSent, the largest first
  struct Total {
    uint64_t count = 0;
    uint64_t bytesSent = 0;
  };
  std::map<std::string, Total> byAxes; ///< key: CommunicationGroup::axes
};

struct CommunicationReportOptions {
  /// If not empty: report only communications with this text in operation, source, pass, reason or a tensor name.
  std::string containing;
  /// If true, layers that differ only in their numbers form one group, "layers.*". If false, each command is a group.
  bool mergesLayers = true;
};

/// Reports the entry with index `entry` of a verified plan. Byte counts assume the algorithms that send the least
/// (Patarasuk and Yuan, 2009). Let n ranks have a tensor of B bytes, counted before a scatter or after a gather.
/// Gathers, scatters and all-to-all send (n-1)/n B per rank and all-reduces twice that; a send sends B and a receive
/// nothing. The time grows with the number of stored commands, not with the numbers of ranks or of calls of segments.
CommunicationReport reportCommunication(const fbs::Plan &plan, uint32_t entry,
                                        const CommunicationReportOptions &options = {});

} // namespace bowline

#endif // BOWLINE_CHECKER_COMMUNICATIONREPORT_H
