//===- CommunicationDescription.h - why ranks communicate *- C++ -*-===//

#ifndef BOWLINE_CHECKER_COMMUNICATIONDESCRIPTION_H
#define BOWLINE_CHECKER_COMMUNICATIONDESCRIPTION_H

#include "checker/CommunicationReport.h"

#include <nlohmann/json.hpp>

#include <string>

namespace bowline {

/// Describes the communications of each entry that has any, once per role, with the reason of each.
nlohmann::ordered_json describeCommunication(const fbs::Plan &plan, const CommunicationReportOptions &options);

/// Returns the result of describeCommunication as text for people; with `showsTensors` also the tensors moved.
std::string layOutCommunication(const nlohmann::ordered_json &json, bool showsTensors);

} // namespace bowline

#endif // BOWLINE_CHECKER_COMMUNICATIONDESCRIPTION_H
