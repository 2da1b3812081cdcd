#include "executor/comm/nccl/nccl_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "executor/comm/failure_line.h"
#include "executor/comm/nccl/nccl_communicator.h"
#include "executor/comm/rank_list.h"
#include "executor/kernels/start_thread.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

constexpr std::chrono::milliseconds kWatchPoll{50};

/// What the communicator of a stream is for. Streams of one purpose share one.
std::string purpose_of(Stream stream, const NcclPolicy& policy) {
  switch (stream) {
    case Stream::all_gather:
      return policy.separate_all_gather ? "all_gather" : "reduce_scatter";
    case Stream::reduce_scatter:
      return "reduce_scatter";
    case Stream::outer_reduce:
      return "outer_reduce";
    case Stream::tensor_parallel:
      return "tensor_parallel";
    case Stream::context_parallel:
      return "context_parallel";
    case Stream::expert_parallel:
      return "expert_parallel";
    case Stream::send:
      return "send";
    case Stream::receive:
      return "receive";
    default:
      return "compute";
  }
}

int cta_policy_of(const NcclPolicy& policy) {
  if (policy.cta_policy.empty()) return NCCL_CONFIG_UNDEF_INT;
  if (policy.cta_policy == "efficiency") return NCCL_CTA_POLICY_EFFICIENCY;
  return policy.cta_policy == "zero" ? NCCL_CTA_POLICY_ZERO : NCCL_CTA_POLICY_DEFAULT;
}

/// Rank 0's words to the others before NCCL connects them. Sent as it lies in memory.
struct Invitation {
  std::int64_t restart = 0;
  ncclResult_t result = ncclSuccess;  // of rank 0's ncclGetUniqueId
  ncclUniqueId id{};
};

}  // namespace

NcclWorld::NcclWorld(const NcclLibrary& library, int gpu, World& control, const NcclPolicy& policy,
                     std::int64_t restart, AbortSignal& abort, double timeout_s)
    : control_(control),
      policy_(policy),
      context_{&library, &abort, std::chrono::duration<double>(timeout_s), control.rank(), gpu} {
  if (size() == 1) return;
  make_root(restart);
  described_ = abort.watch({rank(), [] { return INT64_MAX; }, [this] { return describe(); }});
  raised_ = abort.on_raise([this] {
    { const std::lock_guard<std::mutex> lock(mutex_); }
    changed_.notify_all();
  });
  watch_ = start_thread("the thread that watches NCCL",
                        [this] { return std::jthread([this] { watch(); }); });
}

NcclWorld::~NcclWorld() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (watch_.joinable()) watch_.join();
  // Where the end fails, the run has its result or its message already.
  try {
    close_all();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
  end_all();
  // Of splits that did not succeed: with the end of the parent NCCL has made up its mind.
  for (Slot& slot : slots_) {
    if (!slot.owned && slot.comm != nullptr) handle_of(slot).reset();
  }
}

void NcclWorld::make_root(std::int64_t restart) {
  const NcclCalls& calls = context_.library->calls();
  const std::unique_ptr<ControlGroup> everyone =
      control_.control_group(all_ranks(control_), Control::communicators);
  Invitation own{restart, ncclSuccess, {}};
  if (rank() == 0) own.result = calls.get_unique_id(&own.id);
  std::vector<Invitation> all(static_cast<std::size_t>(size()));
  everyone->all_gather_bytes(std::as_bytes(std::span(&own, 1)),
                             std::as_writable_bytes(std::span(all)));
  const Invitation& first = all.front();
  if (first.result != ncclSuccess) {
    throw NcclError(
        fmt::format("ncclGetUniqueId of rank 0: {}", calls.get_error_string(first.result)));
  }
  const auto other = std::ranges::find_if(
      all, [&](const Invitation& each) { return each.restart != first.restart; });
  if (other != all.end()) {
    throw IoError(
        fmt::format("rank {} was restarted {} times and rank 0 {} times: they are not of "
                    "one attempt",
                    other - all.begin(), other->restart, first.restart));
  }
  Slot& slot = slots_.emplace_back();
  slot.name = fmt::format("the communicator of all {} ranks", size());
  ncclConfig_t settings = config(slot);
  const ncclResult_t begun = calls.init_rank(&slot.comm, size(), first.id, rank(), &settings);
  root_ = handle_of(slot);
  root_->settle("ncclCommInitRankConfig", begun);
}

std::shared_ptr<NcclHandle> NcclWorld::handle_of(Slot& slot) {
  slot.owned = true;
  // NCCL's thread may write the same into it once more.
  ncclComm_t const comm = std::atomic_ref<ncclComm_t>(slot.comm).load(std::memory_order_acquire);
  return std::make_shared<NcclHandle>(context_, slot.name, comm);
}

ncclConfig_t NcclWorld::config(const Slot& slot) const {
  ncclConfig_t settings = NCCL_CONFIG_INITIALIZER;
  settings.blocking = 0;
  settings.splitShare = 0;  // one's transports end with it alone
  if (policy_.min_ctas > 0) settings.minCTAs = policy_.min_ctas;
  if (policy_.max_ctas > 0) settings.maxCTAs = policy_.max_ctas;
  settings.CTAPolicy = cta_policy_of(policy_);
  settings.commName = slot.name.c_str();
  return settings;
}

std::shared_ptr<NcclHandle> NcclWorld::split(const std::vector<std::int64_t>& ranks,
                                             const std::string& name) {
  const int color = static_cast<int>(std::ranges::min(ranks));
  const auto key = static_cast<int>(std::ranges::find(ranks, std::int64_t{rank()}) - ranks.begin());
  Slot& slot = slots_.emplace_back();
  slot.name = name;
  ncclConfig_t settings = config(slot);
  // The parent is in progress until all ranks have split it. Then the child is there.
  root_->call("ncclCommSplit", ranks.size(), [&](ncclComm_t parent) {
    return context_.library->calls().split(parent, color, key, &slot.comm, &settings);
  });
  std::shared_ptr<NcclHandle> child = handle_of(slot);
  if (!child->is_open()) {
    throw NcclError(fmt::format("ncclCommSplit of {} made no communicator", name));
  }
  child->settle("ncclCommSplit", ncclInProgress);
  return child;
}

std::unique_ptr<Communicator> NcclWorld::communicator(const std::vector<std::int64_t>& ranks,
                                                      Stream stream) {
  SHARDWISE_CHECK(ranks.size() > 1, "NCCL has no communicator of one rank");
  const auto self = std::ranges::find(ranks, std::int64_t{rank()});
  SHARDWISE_CHECK(self != ranks.end(), "a rank joins groups that it is part of");
  const std::string purpose = purpose_of(stream, policy_);
  const auto same = [&](const Made& each) {
    return each.ranks == ranks && each.purpose == purpose;
  };
  auto found = std::ranges::find_if(made_, same);
  if (found == made_.end()) {
    const std::string name = fmt::format("{} among ranks {}", purpose, rank_list(ranks));
    add({split(ranks, name), ranks, purpose});
    found = made_.end() - 1;
  }
  return std::make_unique<NcclCommunicator>(found->handle, static_cast<int>(self - ranks.begin()),
                                            static_cast<int>(ranks.size()));
}

void NcclWorld::add(Made made) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ended_) {
      made_.push_back(std::move(made));
      return;
    }
  }
  // The thread has aborted all communicators and left: nobody would abort this one.
  abort_together({&made.handle, 1});
  throw Aborted("another rank failed");
}

void NcclWorld::register_memory(std::span<std::byte> memory) {
  const NcclCalls& calls = context_.library->calls();
  const bool windows = policy_.symmetric_windows;
  if (!windows && !policy_.register_buffers) return;
  if (windows ? calls.register_window == nullptr : calls.register_buffer == nullptr) {
    throw NcclError(fmt::format("{} cannot register {}", context_.library->describe(),
                                windows ? "windows" : "buffers"));
  }
  for (const Made& each : made_) {
    Registered& one = registered_.emplace_back();
    one.handle = each.handle.get();
    each.handle->call(windows ? "ncclCommWindowRegister" : "ncclCommRegister", memory.size(),
                      [&](ncclComm_t comm) {
                        return windows ? calls.register_window(comm, memory.data(), memory.size(),
                                                               &one.window, NCCL_WIN_COLL_SYMMETRIC)
                                       : calls.register_buffer(comm, memory.data(), memory.size(),
                                                               &one.buffer);
                      });
  }
}

std::string NcclWorld::describe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text = fmt::format("{}, {}", context_.library->describe(), to_string(policy_));
  for (const Made& each : made_) text += fmt::format("\n  {}", each.handle->describe());
  return text;
}

void NcclWorld::watch() {
  // A thread that chose no GPU makes a context on the first one when it asks for an event.
  const cudaError_t chosen = cudaSetDevice(context_.gpu);
  if (chosen != cudaSuccess) {
    context_.abort->raise(CudaError(rank(), "cudaSetDevice", chosen).what());
  }
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closing_) {
    if (context_.abort->raised()) {
      lock.unlock();
      return end_all();
    }
    std::string wrong;
    for (const Made& each : made_) {
      const std::string why = each.handle->check();
      if (wrong.empty() && !why.empty()) {
        wrong =
            failure_line(rank(), "", fmt::format("{} (after {})", why, each.handle->describe()));
      }
    }
    if (!wrong.empty()) {
      lock.unlock();
      context_.abort->raise_hung(wrong);  // what the others have issued is worth telling
      lock.lock();
      continue;
    }
    changed_.wait_for(lock, kWatchPoll);
  }
}

void NcclWorld::end_all() {
  std::vector<std::shared_ptr<NcclHandle>> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    for (const Made& each : made_) all.push_back(each.handle);
  }
  if (root_) all.push_back(root_);
  abort_together(all);
}

void NcclWorld::close_all() {
  // An exception on its way out is not yet known to the others, which would not come.
  if (!root_ || context_.abort->raised() || std::uncaught_exceptions() > exceptions_) return;
  const NcclCalls& calls = context_.library->calls();
  for (const Registered& each : registered_) {
    if (each.window == nullptr && each.buffer == nullptr) continue;
    const char* const name =
        each.window != nullptr ? "ncclCommWindowDeregister" : "ncclCommDeregister";
    each.handle->call(name, 0, [&](ncclComm_t comm) {
      return each.window != nullptr ? calls.deregister_window(comm, each.window)
                                    : calls.deregister_buffer(comm, each.buffer);
    });
  }
  // All are announced before one is waited for, so the order of ranks does not matter.
  for (const Made& each : made_) each.handle->finalize();
  root_->finalize();
  for (const Made& each : made_) each.handle->close();
  root_->close();
}

}  // namespace shardwise::exec
