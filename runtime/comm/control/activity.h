#ifndef BOWLINE_RUNTIME_COMM_CONTROL_ACTIVITY_H_
#define BOWLINE_RUNTIME_COMM_CONTROL_ACTIVITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/comm/control/wire.h"

namespace bowline {

// The work of a rank on one communicator.
struct Activity {
  std::string communicator;
  std::vector<int> ranks;    // its members
  uint64_t operation = 0;    // hal::Operation::Pack; 0 when it is in none
  uint64_t total = 0;        // elements of the operation
  uint64_t collectives = 0;  // begun on this communicator so far, of all members
  // Instead of an operation: waits for the others to ask for the communicator; waits for all to leave the group.
  bool creating = false, leaving = false;
  std::vector<int> waits_for;  // the ranks that it knows to wait for

  bool idle() const { return operation == 0 && !creating && !leaving; }
};

// "all_reduce(sum) of 8 f32 (operation 0 of communicator 'all')".
std::string Describe(const Activity& activity);

// A rank as the other ranks see it.
struct RankState {
  enum class Health { kAlive, kSilent, kDead, kLeft };
  Health health = Health::kAlive;
  std::string where;          // "host a, pid 7"
  double silent_seconds = 0;  // for kSilent
  std::vector<Activity> activities;
};

// The reason for which the hub asks all ranks for their activities.
struct Complaint {
  int rank = -1;              // the rank that complains; -1 when none did, and a rank was seen to be gone
  double waited_seconds = 0;  // time in `activity`, if that is the complaint
  Activity activity;
  int unreachable = -1;  // the rank a connection to which failed, when that is the complaint
  std::string failure;   // how; without such a rank, the message of a library that moves data
};

// States in one line which rank waits for which, and which rank is the cause. Returns kUnavailable if a rank died or is
// silent, or if a connection failed; kDeadlineExceeded if all ranks are alive.
absl::Status Explain(const Complaint& complaint, const std::vector<RankState>& ranks);

void Write(WireWriter& writer, const std::vector<Activity>& activities);
std::vector<Activity> ReadActivities(WireReader& reader);
void Write(WireWriter& writer, const Complaint& complaint);
Complaint ReadComplaint(WireReader& reader);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_CONTROL_ACTIVITY_H_
