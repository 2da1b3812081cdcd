#include "tests/executor/fake_gpus/fake_gpus.h"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "executor/cuda/cuda_platform.h"
#include "executor/kernels/cuda/gpu_compute.h"
#include "executor/kernels/cuda/kernel_choices.h"
#include "tests/executor/comm/nccl/fake_job.h"
#include "tests/executor/support/stream_compute.h"
#include "tests/support/host_cuda/fake_calls.h"
#include "tests/support/host_cuda/fake_cublaslt.h"
#include "tests/support/host_cuda/fake_nccl.h"

namespace shardwise::exec::test {
namespace {

std::atomic<int> hosts = 0;  // ranks that have their operations: threads that issue work

/// What the machine runs since reset_fake_gpus().
struct Kernels {
  FakeKernels kind = FakeKernels::cpu;
  GpuLibraries libraries;
  GpuComputeOptions options;
};
Kernels& kernels_now() {
  static Kernels only;
  return only;
}

std::atomic<bool> deterministic_now = false;

Kernels kernels_of_gpus() {
  Kernels made{FakeKernels::gpu, {}, {}};
  made.options.attention = GpuComputeOptions::Attention::own;
  made.options.choices_folder = kernel_choices_folder();
  made.options.seconds_each = 0;
  try {
    made.libraries.cublaslt = std::make_shared<CublasLtLibrary>(fake_cublaslt::reset());
    fake_cublaslt::set_enqueue(
        [](cudaStream_t stream, const char* name, std::function<void()> run) {
          fake_cuda::enqueue(stream, name, std::move(run));
        });
  } catch (const CublasLtError&) {
    made.options.products = GpuComputeOptions::Products::own;
  }
  return made;
}

CudaParts fake_parts() {
  const Kernels kernels = kernels_now();
  const bool on_cpu = kernels.kind == FakeKernels::cpu;
  const std::string text = on_cpu ? "kernels of the CPU" : "kernels of GPUs on the host";
  return {fake_library, [text] { return std::vector<std::string>{text}; },
          [kernels, on_cpu](CudaDevice& device, int rank,
                            const GpuOptions& asked) -> std::unique_ptr<Compute> {
            // Before ranks meet for the first time.
            fake_cuda::set_hosts(++hosts);
            deterministic_now = asked.deterministic;
            if (on_cpu) return std::make_unique<StreamCompute>();
            GpuComputeOptions options = kernels.options;
            options.deterministic = asked.deterministic;
            return make_gpu_compute(device.facts(), rank, kernels.libraries, options);
          },
          "80-real,90-real,100-real,120"};
}

}  // namespace

void reset_fake_gpus(std::uint64_t seed, const fake_cuda::Machine& machine, FakeKernels kernels) {
  fake_nccl::reset();
  fake_cuda::reset(seed, machine);
  hosts = 0;
  kernels_now() = kernels == FakeKernels::cpu ? Kernels() : kernels_of_gpus();
}

bool gpus_are_deterministic() { return deterministic_now; }

const GpuPlugin* fake_gpu_plugin() {
  static const GpuPlugin kPlugin = {0, "fakes", []() -> std::unique_ptr<GpuPlatform> {
                                      return std::make_unique<CudaPlatform>(fake_parts());
                                    }};
  return &kPlugin;
}

void fail_gpu_call(const std::string& call, int nth, int error) {
  if (call.starts_with("cublasLt")) {
    fake_cublaslt::fail(call, nth, static_cast<cublasStatus_t>(error));
  } else {
    fake_cuda::fail(call, nth, static_cast<cudaError_t>(error));
  }
}

void meet_in_folder(const std::string& folder) { fake_nccl::meet_in(folder); }

void never_end_gpu_call(const std::string& call) { fake_nccl::never_end(call); }

std::map<std::string, int> gpu_calls() {
  std::map<std::string, int> all = fake_cuda::calls();
  all.merge(fake_cublaslt::calls());
  return all;
}

bool gpu_call_has_failed() { return fake_cuda::has_failed() || fake_cublaslt::has_failed(); }

std::vector<std::string> gpu_complaints() {
  std::vector<std::string> all = fake_cuda::complaints();
  for (const std::string& each : fake_cublaslt::complaints()) all.push_back(each);
  if (!gpu_call_has_failed()) {
    for (const std::string& each : fake_nccl::unfinished()) all.push_back(each);
  }
  if (const std::string left = fake_cuda::left_over(); !left.empty()) {
    all.push_back("not given back: " + left);
  }
  if (const std::string left = fake_cublaslt::left_over(); !left.empty()) {
    all.push_back("not given back to cuBLASLt: " + left.substr(0, left.find('\n')));
  }
  if (const int left = fake_nccl::left_over(); left > 0) {
    all.push_back("not given back to NCCL: " + std::to_string(left) + " communicators");
  }
  return all;
}

}  // namespace shardwise::exec::test
