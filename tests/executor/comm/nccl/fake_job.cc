#include "tests/executor/comm/nccl/fake_job.h"

#include "executor/comm/thread_world.h"
#include "tests/support/host_cuda/fake_cuda.h"
#include "tests/support/host_cuda/fake_nccl.h"

namespace shardwise::exec::test {
namespace {

/// Waits in the end for what a stream has left, also where the rank fails: it writes into buffers
/// that the test frees.
class Drained {
 public:
  explicit Drained(CudaStream& stream) : stream_(stream) {}
  ~Drained() {
    try {
      stream_.synchronize();
    } catch (const CudaError&) {  // NOLINT(bugprone-empty-catch): the run has its message
    }
  }
  Drained(const Drained&) = delete;
  Drained& operator=(const Drained&) = delete;

 private:
  CudaStream& stream_;
};

}  // namespace

MappableMemory::MappableMemory() { ncclMemAlloc(&memory_, kBytes); }
MappableMemory::~MappableMemory() { ncclMemFree(memory_); }

NcclLibrary fake_library() {
  NcclCalls calls;
  calls.get_version = ncclGetVersion;
  calls.get_unique_id = ncclGetUniqueId;
  calls.get_error_string = ncclGetErrorString;
  calls.get_last_error = ncclGetLastError;
  calls.init_rank = ncclCommInitRankConfig;
  calls.split = ncclCommSplit;
  calls.finalize = ncclCommFinalize;
  calls.destroy = ncclCommDestroy;
  calls.abort = ncclCommAbort;
  calls.get_async_error = ncclCommGetAsyncError;
  calls.register_buffer = ncclCommRegister;
  calls.deregister_buffer = ncclCommDeregister;
  calls.all_gather = ncclAllGather;
  calls.reduce_scatter = ncclReduceScatter;
  calls.all_reduce = ncclAllReduce;
  calls.send = ncclSend;
  calls.receive = ncclRecv;
  calls.group_start = ncclGroupStart;
  calls.group_end = ncclGroupEnd;
  calls.allocate_memory = ncclMemAlloc;
  calls.free_memory = ncclMemFree;
  calls.register_window = ncclCommWindowRegister;
  calls.deregister_window = ncclCommWindowDeregister;
  return {calls, "a fake"};
}

std::string run_fake(const FakeJob& job, const std::function<void(NcclWorld&, CudaStream&)>& body,
                     const std::function<void()>& before) {
  fake_nccl::reset();
  fake_cuda::Machine machine;
  machine.devices = job.ranks;
  fake_cuda::reset(job.seed, machine);
  fake_cuda::set_hosts(job.ranks);
  if (before) before();
  const NcclLibrary library = fake_library();
  AbortSignal abort;
  const auto rank_main = [&](World& threads) {
    const int rank = threads.rank();
    const std::int64_t restart = rank == 1 ? job.restart_of_rank_1 : 0;
    CudaCalls(rank).check(cudaSetDevice(rank), "cudaSetDevice");
    CudaStream stream{CudaCalls(rank), StreamPriority::high};
    const Drained drained(stream);
    NcclWorld world(library, rank, threads, job.policy, restart, abort, job.timeout_s);
    body(world, stream);
    if (job.one_waits) {
      // All have issued.
      all_gather_texts(*threads.control_group(all_ranks(threads), Control::runs), "");
      if (rank == 0) fake_cuda::set_hosts(1);
      if (rank != 0) return;
    }
    stream.synchronize();
  };
  try {
    run_ranks(job.ranks, abort, rank_main, std::chrono::seconds(60));
  } catch (const std::exception& broken) {
    return broken.what();
  }
  return {};
}

}  // namespace shardwise::exec::test
