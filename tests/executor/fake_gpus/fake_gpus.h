#pragma once

// The GPUs of shardwise-run on the fakes of CUDA's runtime and NCCL, with the CPU's kernels in
// place of those of GPUs (StreamCompute), or with those of GPUs as host_cuda runs them.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "executor/device/gpu_plugin.h"
#include "tests/support/host_cuda/fake_cuda.h"

namespace shardwise::exec::test {

/// Whose kernels the GPUs run: the CPU's, or those of GPUs, beside a fake of cuBLASLt where this
/// machine has the library, else with our own kernel of products.
enum class FakeKernels : std::uint8_t { cpu, gpu };

/// Begins a test: the machine has these GPUs, and orders are drawn from `seed`.
void reset_fake_gpus(std::uint64_t seed, const fake_cuda::Machine& machine,
                     FakeKernels kernels = FakeKernels::cpu);
/// Plugin that use_gpu_library() takes, and that each open() gives.
const GpuPlugin* fake_gpu_plugin();

/// Whether the kernels of the rank that was given a GPU last were asked for equal bits.
bool gpus_are_deterministic();

/// Has a call of CUDA, NCCL or cuBLASLt fail once, the `nth` since reset_fake_gpus() from 0.
/// \param error  a code of its library
void fail_gpu_call(const std::string& call, int nth, int error);
/// Has a call that makes NCCL's communicators stay in progress for ever.
void never_end_gpu_call(const std::string& call);
/// This process is one rank of several, which share an empty folder.
void meet_in_folder(const std::string& folder);
/// How often each call was made since reset_fake_gpus().
std::map<std::string, int> gpu_calls();
/// Whether a call has failed because fail_gpu_call() said so.
bool gpu_call_has_failed();
/// Calls that CUDA, NCCL or cuBLASLt forbid, and what was made and not given back, one line
/// each.
std::vector<std::string> gpu_complaints();

}  // namespace shardwise::exec::test
