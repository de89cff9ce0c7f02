//===- CommunicationDescription.h - why ranks communicate *- C++ -*-===//

#ifndef BOWLINE_CHECKER_COMMUNICATIONDESCRIPTION_H
#define BOWLINE_CHECKER_COMMUNICATIONDESCRIPTION_H

#include "checker/CommunicationReport.h"

#include <nlohmann/json.hpp>

#include <string>

namespace bowline {

/// Describes the communications of each entry and role that has any, with the reason of each.
nlohmann::ordered_json describeCommunication(const fbs::Plan &plan, const CommunicationReportOptions &options);

/// Formats the result of describeCommunication for people; with `showsTensors` it lists the moved tensors too.
std::string layOutCommunication(const nlohmann::ordered_json &json, bool showsTensors);

} // namespace bowline

#endif // BOWLINE_CHECKER_COMMUNICATIONDESCRIPTION_H
