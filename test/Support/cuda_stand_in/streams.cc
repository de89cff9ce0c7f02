// Streams and events of the stand-in for NVIDIA's driver.

#include <algorithm>
#include <cstdlib>

#include "test/Support/cuda_stand_in/stand_in.h"

namespace bowline::stand_in {

namespace {
std::atomic<uint32_t> next_seed{1};
char contexts[kMostCards];

struct EventHandle {
  std::shared_ptr<Event> event = std::make_shared<Event>();
};

std::shared_ptr<Event> Of(CUevent event) { return reinterpret_cast<EventHandle*>(event)->event; }
}  // namespace

std::mutex& mutex = *new std::mutex();
std::condition_variable& changed = *new std::condition_variable();
CUresult sticky[kMostCards] = {};
thread_local CUcontext current = nullptr;

int Cards() {
  const char* const asked = std::getenv("BOWLINE_STAND_IN_CARDS");
  return asked == nullptr ? 1 : std::clamp(std::atoi(asked), 1, kMostCards);
}
CUcontext ContextOf(int card) { return reinterpret_cast<CUcontext>(&contexts[card]); }
int Card() { return static_cast<int>(reinterpret_cast<char*>(current) - contexts); }

Stream::Stream(int card) : card_(card), random_(next_seed++), thread_(&Stream::Work, this) {}

Stream::~Stream() {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    stop_ = true;
  }
  changed.notify_all();
  thread_.join();
}

void Stream::Add(Command command) {
  commands_.push_back(std::move(command));
  ++added_;
  changed.notify_all();
}

void Stream::Wait(std::unique_lock<std::mutex>& lock) {
  changed.wait(lock, [this, until = added_] { return done_ >= until; });
}

void Stream::Work() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return stop_ || !commands_.empty(); });
    if (commands_.empty()) return;
    const Command command = std::move(commands_.front());
    commands_.pop_front();
    const auto wait = random_() % 8 == 0 ? random_() % 200 : 0;
    const bool runs = sticky[card_] == CUDA_SUCCESS;
    lock.unlock();
    if (wait > 0) std::this_thread::sleep_for(std::chrono::microseconds(wait));
    const CUresult result = runs ? command() : CUDA_SUCCESS;
    lock.lock();
    if (sticky[card_] == CUDA_SUCCESS) sticky[card_] = result;
    ++done_;
    changed.notify_all();
  }
}

std::set<Stream*>& Streams() {
  static auto* const streams = new std::set<Stream*>();
  return *streams;
}

CUresult CheckStream(CUstream stream) {
  REQUIRE_CONTEXT();
  const std::lock_guard<std::mutex> lock(mutex);
  if (stream == nullptr || stream == CU_STREAM_LEGACY) return RefuseLegacy();
  if (!Streams().contains(Of(stream))) return CUDA_ERROR_INVALID_HANDLE;
  return Of(stream)->card() == Card() ? sticky[Card()] : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult Issue(CUstream stream, Command command) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (Of(stream)->point.capture != nullptr) return AddNode(Of(stream)->point, std::move(command));
  Of(stream)->Add(std::move(command));
  return CUDA_SUCCESS;
}

}  // namespace bowline::stand_in

using namespace bowline::stand_in;

STAND_IN CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  REQUIRE_CONTEXT();
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  auto* const made = new Stream(Card());
  const std::lock_guard<std::mutex> lock(mutex);
  Streams().insert(made);
  *stream = reinterpret_cast<CUstream>(made);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuStreamDestroy(CUstream stream) {
  REQUIRE_CONTEXT();
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (!Streams().contains(Of(stream))) return CUDA_ERROR_INVALID_HANDLE;
    if (Of(stream)->point.capture != nullptr) {
      return Invalidate(Of(stream)->point, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    Of(stream)->Wait(lock);
    Streams().erase(Of(stream));
  }
  delete Of(stream);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuStreamSynchronize(CUstream stream) {
  REQUIRE_STREAM(stream);
  std::unique_lock<std::mutex> lock(mutex);
  if (Of(stream)->point.capture != nullptr) {
    return Invalidate(Of(stream)->point, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  Of(stream)->Wait(lock);
  return sticky[Card()];
}
STAND_IN CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned) {
  REQUIRE_STREAM(stream);
  const std::shared_ptr<Event> event = Of(handle);
  const std::lock_guard<std::mutex> lock(mutex);
  CapturePoint& own = Of(stream)->point;
  if (const std::shared_ptr<Capture> capture = event->point.capture; capture != nullptr) {
    // A graph that is complete has no point that a stream could wait for.
    if (capture->ended) return Invalidate(own, CUDA_ERROR_CAPTURED_EVENT);
    if (own.capture == nullptr) {
      own.capture = capture;
      capture->streams.insert(Of(stream));
    } else if (own.capture != capture) {
      Invalidate(event->point, CUDA_SUCCESS);
      return Invalidate(own, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    own.after.insert(event->point.after.begin(), event->point.after.end());
    return CUDA_SUCCESS;
  }
  if (own.capture != nullptr) return Invalidate(own, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  Of(stream)->Add([event, point = event->recorded] {
    std::unique_lock<std::mutex> reached(mutex);
    changed.wait(reached, [&] { return event->reached >= point; });
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuEventCreate(CUevent* event, unsigned flags) {
  REQUIRE_CONTEXT();
  auto* const made = new EventHandle();
  made->event->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  *event = reinterpret_cast<CUevent>(made);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuEventDestroy(CUevent event) {
  REQUIRE_CONTEXT();
  delete reinterpret_cast<EventHandle*>(event);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuEventRecord(CUevent handle, CUstream stream) {
  REQUIRE_STREAM(stream);
  const std::shared_ptr<Event> event = Of(handle);
  const std::lock_guard<std::mutex> lock(mutex);
  event->point = Of(stream)->point;
  if (event->point.capture != nullptr) return CUDA_SUCCESS;
  Of(stream)->Add([event, point = ++event->recorded] {
    const std::lock_guard<std::mutex> reached(mutex);
    if (point > event->reached) {
      event->reached = point;
      event->time = std::chrono::steady_clock::now();
    }
    changed.notify_all();
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuEventQuery(CUevent handle) {
  REQUIRE_NO_CAPTURE();
  const std::lock_guard<std::mutex> lock(mutex);
  const std::shared_ptr<Event> event = Of(handle);
  if (event->point.capture != nullptr) return Invalidate(event->point, CUDA_ERROR_CAPTURED_EVENT);
  return event->reached == event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
STAND_IN CUresult cuEventSynchronize(CUevent handle) {
  REQUIRE_CONTEXT();
  const std::shared_ptr<Event> event = Of(handle);
  std::unique_lock<std::mutex> lock(mutex);
  if (event->point.capture != nullptr) return Invalidate(event->point, CUDA_ERROR_CAPTURED_EVENT);
  const uint64_t point = event->recorded;
  changed.wait(lock, [&] { return event->reached >= point; });
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  REQUIRE_CONTEXT();
  const std::lock_guard<std::mutex> lock(mutex);
  const Event &first = *Of(begin), &second = *Of(end);
  if (first.point.capture != nullptr || second.point.capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  if (!first.timed || !second.timed || first.recorded == 0 || second.recorded == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (first.reached < first.recorded || second.reached < second.recorded) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(second.time - first.time).count();
  return CUDA_SUCCESS;
}
