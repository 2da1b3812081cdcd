// shardwise-run on fake GPUs. What the machine has is in the environment: FAKE_GPUS (2),
// FAKE_GPU_BYTES (64 GiB), FAKE_GPU_CAPABILITY (90), FAKE_GPU_DRIVER (13000), FAKE_GPU_SEED (1).
// FAKE_GPU_KERNELS (0): 1 for the kernels of GPUs, which host_cuda runs, instead of the CPU's.
// FAKE_GPU_FAIL, "cudaMalloc 3 2": the fourth such call fails with that error of its library.
// FAKE_NCCL_ENDLESS: a call that makes communicators, which stays in progress for ever.
// FAKE_GPU_CALLS: a file for how often each call was made, and whether that one failed.
// What kernels were chosen is kept where SHARDWISE_KERNEL_CHOICES says alone.
// Ranks are threads, or processes that share the empty folder FAKE_NCCL_FOLDER: then FAKE_GPU_CALLS
// has a file for each, with its rank behind a point. Ends with kComplained where CUDA, NCCL or
// cuBLASLt forbid what was done, or something was not given back.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "executor/launch/command.h"
#include "executor/launch/gpu_library.h"
#include "executor/launch/launcher.h"
#include "executor/storage/bad_input.h"
#include "planner/files/program.h"
#include "planner/spec/text/error.h"
#include "tests/executor/fake_gpus/fake_gpus.h"

namespace {

constexpr int kComplained = 70;

std::int64_t setting(const char* name, std::int64_t usual) {
  const char* const text = std::getenv(name);
  return text == nullptr ? usual : std::stoll(text);
}

/// What is to fail, as FAKE_GPU_FAIL says.
void read_failure() {
  const char* const text = std::getenv("FAKE_GPU_FAIL");
  if (text == nullptr) return;
  std::istringstream words(text);
  std::string call;
  int nth = 0;
  int error = 0;
  words >> call >> nth >> error;
  shardwise::exec::test::fail_gpu_call(call, nth, error);
}

void write_calls() {
  const char* const path = std::getenv("FAKE_GPU_CALLS");
  if (path == nullptr) return;
  const char* const rank = std::getenv(shardwise::exec::kRankVariable);
  std::ofstream file(rank == nullptr ? std::string(path) : std::string(path) + "." + rank);
  for (const auto& [call, count] : shardwise::exec::test::gpu_calls()) {
    file << call << ' ' << count << '\n';
  }
  file << "failed " << (shardwise::exec::test::gpu_call_has_failed() ? 1 : 0) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  using namespace shardwise::exec;
  return shardwise::run_program("shardwise-run", [&] {
    fake_cuda::Machine machine;
    const auto capability = static_cast<int>(setting("FAKE_GPU_CAPABILITY", 90));
    machine.devices = static_cast<int>(setting("FAKE_GPUS", 2));
    machine.major = capability / 10;
    machine.minor = capability % 10;
    machine.driver_version = static_cast<int>(setting("FAKE_GPU_DRIVER", 13000));
    machine.total_bytes = setting("FAKE_GPU_BYTES", std::int64_t{64} << 30);
    ::setenv("SHARDWISE_KERNEL_CHOICES", "off", /*overwrite=*/0);
    const bool kernels = setting("FAKE_GPU_KERNELS", 0) != 0;
    test::reset_fake_gpus(static_cast<std::uint64_t>(setting("FAKE_GPU_SEED", 1)), machine,
                          kernels ? test::FakeKernels::gpu : test::FakeKernels::cpu);
    if (const char* const folder = std::getenv("FAKE_NCCL_FOLDER")) test::meet_in_folder(folder);
    use_gpu_library(test::fake_gpu_plugin);
    read_failure();
    if (const char* const call = std::getenv("FAKE_NCCL_ENDLESS")) test::never_end_gpu_call(call);
    int code = kDone;
    try {
      code = run_command(argc, argv);
    } catch (const BadInput& problem) {
      say({Failure::Kind::bad_input, problem.what()});
      code = kBadInput;
    } catch (const shardwise::IoError& broken) {
      say({Failure::Kind::broken, broken.what()});
      code = kWorldBroke;
    }
    write_calls();
    const std::vector<std::string> complaints = test::gpu_complaints();
    for (const std::string& each : complaints) fmt::print(stderr, "{}\n", each);
    return complaints.empty() ? code : kComplained;
  });
}
