#include "runtime/drivers/discrete/device_activity.h"

#include <algorithm>
#include <condition_variable>
#include <utility>
#include <vector>

namespace bowline {
namespace {

struct Process {
  std::mutex mutex;
  int active = 0;
  std::vector<std::pair<uint64_t, DeviceActivity::Late*>> late;  // with their turns
};

Process& ThisProcess() {
  static Process process;
  return process;
}

class LateCall : public DeviceActivity::Late {
 public:
  void GoOn() override {
    DeviceActivity::Begin();
    goes_on_ = true;
    wake_.notify_one();
  }

  void Await(std::unique_lock<std::mutex>& lock) {
    if (wake_.wait_for(lock, DeviceActivity::kPatience, [&] { return goes_on_; })) return;
    DeviceActivity::Remove(this);
    DeviceActivity::Begin();
  }

 private:
  bool goes_on_ = false;
  std::condition_variable wake_;
};

}  // namespace

std::mutex& DeviceActivity::mutex() { return ThisProcess().mutex; }

void DeviceActivity::Begin() { ++ThisProcess().active; }

void DeviceActivity::End() {
  Process& process = ThisProcess();
  if (--process.active > 0 || process.late.empty()) return;
  const auto first = std::min_element(process.late.begin(), process.late.end(),
                                      [](const auto& a, const auto& b) { return a.first < b.first; });
  Late* const late = first->second;
  process.late.erase(first);
  late->GoOn();
}

void DeviceActivity::Add(uint64_t turn, Late* late) { ThisProcess().late.emplace_back(turn, late); }

void DeviceActivity::Remove(Late* late) {
  std::erase_if(ThisProcess().late, [&](const auto& entry) { return entry.second == late; });
}

void DeviceActivity::AwaitQuiet(uint64_t turn) {
  std::unique_lock<std::mutex> lock(mutex());
  LateCall call;
  Add(turn, &call);
  End();
  call.Await(lock);
}

}  // namespace bowline
