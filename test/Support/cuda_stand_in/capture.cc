// Captures of streams, and graphs, of the stand-in for NVIDIA's driver. A graph's commands run one after another in an
// order that is random but for their edges: where an edge is missing, results are wrong in some replay.

#include <algorithm>

#include "test/Support/cuda_stand_in/stand_in.h"

namespace bowline::stand_in {
namespace {

// Captures that have begun and not ended.
std::set<std::shared_ptr<Capture>>& Captures() {
  static auto* const captures = new std::set<std::shared_ptr<Capture>>();
  return *captures;
}

bool ConcernsThisThread(const Capture& capture) {
  return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
         (capture.mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && capture.thread == std::this_thread::get_id());
}

CUresult InvalidateThisThreads(CUresult error) {
  bool any = false;
  for (const std::shared_ptr<Capture>& capture : Captures()) {
    if (!ConcernsThisThread(*capture)) continue;
    capture->invalid = any = true;
  }
  return any ? error : CUDA_SUCCESS;
}

// The nodes that come before `point`, and its own.
std::set<size_t> Ancestors(const CapturePoint& point) {
  std::set<size_t> found = point.after;
  std::vector<size_t> open(found.begin(), found.end());
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    for (const size_t before : point.capture->graph.nodes[node].after) {
      if (found.insert(before).second) open.push_back(before);
    }
  }
  return found;
}

struct Executable {
  Graph graph;
  std::minstd_rand random;
  std::mutex one_replay;  // as CUDA, which orders the launches of one graph

  CUresult Run() {
    const std::lock_guard<std::mutex> lock(one_replay);
    std::vector<size_t> missing(graph.nodes.size());  // how many nodes each waits for
    std::vector<std::vector<size_t>> behind(graph.nodes.size());
    std::vector<size_t> ready;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      missing[i] = graph.nodes[i].after.size();
      for (const size_t before : graph.nodes[i].after) behind[before].push_back(i);
      if (missing[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      std::swap(ready[random() % ready.size()], ready.back());
      const size_t node = ready.back();
      ready.pop_back();
      const CUresult result = graph.nodes[node].run();
      if (result != CUDA_SUCCESS) return result;
      for (const size_t next : behind[node]) {
        if (--missing[next] == 0) ready.push_back(next);
      }
    }
    return CUDA_SUCCESS;
  }
};

// Graphs and executables made from them; an executable in a stream stays until it ran.
std::set<Graph*>& Graphs() {
  static auto* const graphs = new std::set<Graph*>();
  return *graphs;
}
std::set<std::shared_ptr<Executable>*>& Executables() {
  static auto* const executables = new std::set<std::shared_ptr<Executable>*>();
  return *executables;
}

}  // namespace

CUresult RefuseUnsafe() { return InvalidateThisThreads(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); }

CUresult RefuseLegacy() {
  const CUresult refused = InvalidateThisThreads(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  // The driver under test never means this stream.
  return refused == CUDA_SUCCESS ? CUDA_ERROR_INVALID_HANDLE : refused;
}

CUresult Invalidate(const CapturePoint& point, CUresult error) {
  if (point.capture != nullptr) point.capture->invalid = true;
  return error;
}

CUresult AddNode(CapturePoint& point, Command command) {
  if (point.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<Graph::Node>& nodes = point.capture->graph.nodes;
  nodes.push_back({std::move(command), {point.after.begin(), point.after.end()}});
  point.after = {nodes.size() - 1};
  return CUDA_SUCCESS;
}

}  // namespace bowline::stand_in

using namespace bowline::stand_in;

STAND_IN CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  REQUIRE_STREAM(stream);
  const std::lock_guard<std::mutex> lock(mutex);
  if (Of(stream)->point.capture != nullptr) {
    return Invalidate(Of(stream)->point, CUDA_ERROR_ILLEGAL_STATE);
  }
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = Of(stream);
  capture->streams = {Of(stream)};
  Captures().insert(capture);
  Of(stream)->point = {capture, {}};
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  *graph = nullptr;
  REQUIRE_CONTEXT();
  const std::lock_guard<std::mutex> lock(mutex);
  if (!Streams().contains(Of(stream))) return CUDA_ERROR_INVALID_HANDLE;
  const std::shared_ptr<Capture> capture = Of(stream)->point.capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != Of(stream)) return Invalidate({capture, {}}, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
    return Invalidate({capture, {}}, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }
  const std::set<size_t> joined = Ancestors(Of(stream)->point);
  bool all_joined = true;
  for (Stream* const each : capture->streams) {
    all_joined =
        all_joined && std::includes(joined.begin(), joined.end(), each->point.after.begin(), each->point.after.end());
    each->point = {};
  }
  capture->ended = true;
  Captures().erase(capture);
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!all_joined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  auto made = std::make_unique<Graph>(std::move(capture->graph));
  Graphs().insert(made.get());
  *graph = reinterpret_cast<CUgraph>(made.release());
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  REQUIRE_NO_CAPTURE();
  static uint32_t seed = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!Graphs().contains(reinterpret_cast<Graph*>(graph)) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<Executable>();
  made->graph = *reinterpret_cast<Graph*>(graph);
  made->random = std::minstd_rand(++seed);
  auto* const handle = new std::shared_ptr<Executable>(std::move(made));
  Executables().insert(handle);
  *executable = reinterpret_cast<CUgraphExec>(handle);
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuGraphDestroy(CUgraph graph) {
  REQUIRE_CONTEXT();
  const std::lock_guard<std::mutex> lock(mutex);
  if (Graphs().erase(reinterpret_cast<Graph*>(graph)) == 0) return CUDA_ERROR_INVALID_VALUE;
  delete reinterpret_cast<Graph*>(graph);
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuGraphExecDestroy(CUgraphExec executable) {
  REQUIRE_CONTEXT();
  const std::lock_guard<std::mutex> lock(mutex);
  auto* const handle = reinterpret_cast<std::shared_ptr<Executable>*>(executable);
  if (Executables().erase(handle) == 0) return CUDA_ERROR_INVALID_VALUE;
  delete handle;
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  REQUIRE_STREAM(stream);
  std::shared_ptr<Executable> own;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    auto* const handle = reinterpret_cast<std::shared_ptr<Executable>*>(executable);
    if (!Executables().contains(handle)) return CUDA_ERROR_INVALID_VALUE;
    own = *handle;
  }
  return Issue(stream, [own] { return own->Run(); });
}
