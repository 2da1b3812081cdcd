// Streams, events, memory, copies and facts, under CUDA's prototypes.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "tests/support/host_cuda/fake_calls.h"
#include "tests/support/host_cuda/fake_graph.h"
#include "tests/support/host_cuda/host_cuda.h"

namespace fake_cuda {
namespace {

struct Block {
  std::size_t bytes = 0;
  bool pinned = false;
  bool mappable = false;
};
std::map<const char*, Block> blocks;
int events = 0;
thread_local cudaError_t last_error = cudaSuccess;  // NOLINT(*-naming)
thread_local int waits_made = 0;                    // NOLINT(*-naming)
thread_local int forgotten_wait = -1;               // NOLINT(*-naming)

/// The allocation that has the bytes; null where none has.
const Block* block_of(const void* at, std::size_t bytes) {
  const char* const first = static_cast<const char*>(at);
  const auto after = blocks.upper_bound(first);
  if (after == blocks.begin()) return nullptr;
  const auto& [begin, block] = *std::prev(after);
  return first + bytes <= begin + block.bytes ? &block : nullptr;
}

bool within(const void* at, std::size_t bytes, bool pinned) {
  const Block* const block = block_of(at, bytes);
  return block != nullptr && block->pinned == pinned;
}

cudaError_t take(void** at, std::size_t bytes, bool pinned, bool mappable = false) {
  std::int64_t used = 0;
  for (const auto& [begin, block] : blocks) {
    if (!block.pinned) used += static_cast<std::int64_t>(block.bytes);
  }
  if (!pinned && used + static_cast<std::int64_t>(bytes) > the_machine().total_bytes) {
    return cudaErrorMemoryAllocation;
  }
  constexpr std::size_t kPage = 4096;
  *at = std::aligned_alloc(kPage, std::max(kPage, (bytes + kPage - 1) / kPage * kPage));
  host_cuda::forbid(static_cast<char*>(*at) + bytes, (kPage - bytes % kPage) % kPage);
  std::memset(*at, pinned ? 0 : 0xCD, bytes);
  blocks[static_cast<char*>(*at)] = {bytes, pinned, mappable};
  return cudaSuccess;
}

cudaError_t give_back(const char* call, void* at, bool pinned, bool mappable = false) {
  const auto found = blocks.find(static_cast<char*>(at));
  if (found == blocks.end() || found->second.pinned != pinned ||
      found->second.mappable != mappable) {
    complain(std::string(call) + " of what is not an allocation");
    return cudaErrorInvalidValue;
  }
  Streams::all().run_all();  // CUDA waits for the device too
  host_cuda::allow(at, (found->second.bytes + 4095) / 4096 * 4096);
  std::free(at);
  blocks.erase(found);
  return cudaSuccess;
}

std::function<bool()> empty(cudaStream_t stream) {
  return [stream] { return stream->queue.empty(); };
}

/// Of an event that was recorded, outside captures.
bool refused(const char* call, cudaEvent_t event) {
  if (forbidden(call)) return true;
  if (!event->mark || !event->mark->captured) return false;
  complain(std::string(call) + " of an event of a capture");
  return true;
}

/// Ends a call in which the host learnt that what `edge` says is over, or that the device is.
cudaError_t learnt(cudaError_t error, void* edge) {
  if (error != cudaErrorNotReady && edge != nullptr) host_cuda::acquire(edge);
  return error;
}

}  // namespace

bool is_device(const void* at, std::size_t bytes) { return within(at, bytes, false); }
int forget_wait(int nth) {
  forgotten_wait = nth;
  return std::exchange(waits_made, 0);
}
bool is_pinned(const void* at, std::size_t bytes) { return within(at, bytes, true); }
bool is_mappable(const void* at, std::size_t bytes) {
  const Block* const block = block_of(at, bytes);
  return block != nullptr && block->mappable;
}
cudaError_t take_mappable(void** at, std::size_t bytes) { return take(at, bytes, false, true); }
cudaError_t give_back_mappable(const char* call, void* at) {
  return give_back(call, at, false, true);
}
int events_left() { return events; }
int blocks_left() { return static_cast<int>(blocks.size()); }

void forget_runtime() {
  last_error = cudaSuccess;
  for (const auto& [begin, block] : blocks) {
    host_cuda::allow(const_cast<char*>(begin), (block.bytes + 4095) / 4096 * 4096);
    std::free(const_cast<char*>(begin));
  }
  blocks.clear();
  events = 0;
}

namespace {

cudaError_t wait_for(cudaStream_t stream) {
  Call call("cudaStreamSynchronize");
  if (call.error() != cudaSuccess) return call.error();
  if (forbidden("cudaStreamSynchronize")) return cudaErrorStreamCaptureUnsupported;
  return Streams::all().wait(call.lock(), empty(stream));
}

cudaError_t ask_about(cudaStream_t stream) {
  const Call call("cudaStreamQuery");
  if (call.error() != cudaSuccess) return call.error();
  if (forbidden("cudaStreamQuery")) return cudaErrorStreamCaptureUnsupported;
  return Streams::all().ask(empty(stream));
}

cudaError_t wait_for(cudaEvent_t event) {
  Call call("cudaEventSynchronize");
  if (call.error() != cudaSuccess) return call.error();
  if (refused("cudaEventSynchronize", event)) return cudaErrorStreamCaptureUnsupported;
  if (!event->mark) return cudaSuccess;
  return Streams::all().wait(call.lock(), [event] { return event->mark->done; });
}

cudaError_t ask_about(cudaEvent_t event) {
  const Call call("cudaEventQuery");
  if (call.error() != cudaSuccess) return call.error();
  if (refused("cudaEventQuery", event)) return cudaErrorStreamCaptureUnsupported;
  if (!event->mark) return cudaSuccess;
  return Streams::all().ask([event] { return event->mark->done; });
}

/// Kernels of host_cuda go into streams too, once anything of the fake is linked.
const bool kKernelsEnqueued = [] {
  host_cuda::set_enqueue([](cudaStream_t stream, const char* name, dim3 grid, dim3 block,
                            std::size_t shared_bytes, const std::function<void()>& thread) {
    const std::string text = name;
    const cudaError_t error = enqueue(stream, "launch", [=](std::int64_t) {
      return std::vector<Work>{{text, {}, {}, [=] {
                                  host_cuda::run_grid(grid, block, shared_bytes, thread,
                                                      text.c_str());
                                }}};
    });
    if (error == cudaSuccess) return static_cast<const char*>(nullptr);
    last_error = error;
    return cudaGetErrorString(error);
  });
  return true;
}();

}  // namespace
}  // namespace fake_cuda

using fake_cuda::Call;
using fake_cuda::Streams;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const Call call(__func__);
  *count = fake_cuda::gpus_seen();
  return call.error();
}

cudaError_t cudaSetDevice(int device) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (device >= fake_cuda::gpus_seen()) return cudaErrorInvalidDevice;
  fake_cuda::choose();
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  const Call call(__func__);
  *version = fake_cuda::the_machine().driver_version;
  return call.error();
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  const Call call(__func__);
  *version = fake_cuda::the_machine().runtime_version;
  return call.error();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const fake_cuda::Machine& machine = fake_cuda::the_machine();
  *properties = {};
  machine.name.copy(properties->name, sizeof(properties->name) - 1);
  properties->major = machine.major;
  properties->minor = machine.minor;
  properties->uuid.bytes[0] = static_cast<char>(0xFA);
  properties->uuid.bytes[15] = static_cast<char>(fake_cuda::gpu_seen(device));
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  *total = static_cast<std::size_t>(fake_cuda::the_machine().total_bytes);
  *free = *total;
  for (const auto& [begin, block] : fake_cuda::blocks) {
    if (!block.pinned) *free -= block.bytes;
  }
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** at, std::size_t bytes) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (fake_cuda::forbidden(__func__)) return cudaErrorStreamCaptureUnsupported;
  return fake_cuda::take(at, bytes, false);
}

cudaError_t cudaHostAlloc(void** at, std::size_t bytes, unsigned /*flags*/) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (fake_cuda::forbidden(__func__)) return cudaErrorStreamCaptureUnsupported;
  return fake_cuda::take(at, bytes, true);
}

cudaError_t cudaFree(void* at) {
  const Call call(__func__);
  if (fake_cuda::forbidden(__func__)) return cudaErrorStreamCaptureUnsupported;
  const cudaError_t done = fake_cuda::give_back(__func__, at, false);
  return call.error() != cudaSuccess ? call.error() : done;
}

cudaError_t cudaFreeHost(void* at) {
  const Call call(__func__);
  if (fake_cuda::forbidden(__func__)) return cudaErrorStreamCaptureUnsupported;
  const cudaError_t done = fake_cuda::give_back(__func__, at, true);
  return call.error() != cudaSuccess ? call.error() : done;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const bool to_device = kind != cudaMemcpyDeviceToHost;
  const bool from_device = kind != cudaMemcpyHostToDevice;
  if (!fake_cuda::within(to, bytes, !to_device) || !fake_cuda::within(from, bytes, !from_device)) {
    fake_cuda::complain("a copy of " + std::to_string(bytes) +
                        " bytes outside device and pinned memory");
    return cudaErrorInvalidValue;
  }
  return fake_cuda::issue(stream, __func__, call.issued(), [=](std::int64_t) {
    return std::vector<fake_cuda::Work>{{"copy", {}, {}, [=] { std::memcpy(to, from, bytes); }}};
  });
}

cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t stream) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (!fake_cuda::within(at, bytes, false)) {
    fake_cuda::complain("a fill of " + std::to_string(bytes) + " bytes outside device memory");
    return cudaErrorInvalidValue;
  }
  return fake_cuda::issue(stream, __func__, call.issued(), [=](std::int64_t) {
    return std::vector<fake_cuda::Work>{{"fill", {}, {}, [=] { std::memset(at, value, bytes); }}};
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  const Call call(__func__);
  *least = 0;
  *greatest = -5;
  return call.error();
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (flags != cudaStreamNonBlocking) fake_cuda::complain("a stream that the default one blocks");
  *stream = Streams::all().open();
  (*stream)->priority = priority;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Call call(__func__);
  Streams::all().close(stream);
  return call.error();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return fake_cuda::learnt(fake_cuda::wait_for(stream), stream->over);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return fake_cuda::learnt(fake_cuda::ask_about(stream), stream->over);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0, nullptr};
  ++fake_cuda::events;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call call(__func__);
  delete event;
  --fake_cuda::events;
  return call.error();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  event->mark = std::make_shared<fake_cuda::Mark>();
  if (stream->capture) {
    fake_cuda::capture_record(stream, event->mark);
  } else {
    Streams::all().put(stream, {{"record", {}, {}, {}}, event->mark, nullptr, call.issued()});
  }
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (fake_cuda::waits_made++ == fake_cuda::forgotten_wait) return cudaSuccess;
  if (!event->mark) return cudaSuccess;  // of one never recorded CUDA does not wait either
  if (stream->capture || event->mark->captured) return fake_cuda::capture_wait(stream, event->mark);
  Streams::all().put(stream, {{"wait", {}, {}, {}}, nullptr, event->mark, call.issued()});
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return fake_cuda::learnt(fake_cuda::wait_for(event), event->mark ? event->mark->edge : nullptr);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return fake_cuda::learnt(fake_cuda::ask_about(event), event->mark ? event->mark->edge : nullptr);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (!begin->timed || !end->timed || !begin->mark || !end->mark) {
    return cudaErrorInvalidResourceHandle;
  }
  if (!begin->mark->done || !end->mark->done) return cudaErrorNotReady;
  *milliseconds = static_cast<float>(end->mark->at_us - begin->mark->at_us) * 1e-3F;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(fake_cuda::last_error, cudaSuccess); }

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}

// Each error has a text of its own.
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation) return "out of memory";
  thread_local std::string text;
  text = "error " + std::to_string(static_cast<int>(error)) + " of the fake";
  return text.c_str();
}

}  // extern "C"
