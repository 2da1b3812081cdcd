// What runs CUDA kernels on the host finds the defects that are planted here.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "executor/kernels/cuda/device_code/reduce.h"
#include "executor/kernels/cuda/device_code/tensor_cores.h"
#include "tests/executor/cuda/on_host.h"

namespace shardwise::exec::cuda {
namespace {

constexpr int kThreads = 96;
constexpr std::int64_t kTwoRows = 2LL * kThreads;  // of two rows

// What is planted.
struct Defects {
  bool no_barrier = false;
  bool no_second_barrier = false;
  bool half_a_barrier = false;
  bool beyond_shared = false;
  bool beyond_global = false;
};

/// out [2, threads] = in [2, threads], each row turned round through the same shared memory.
__global__ void turn_rows(const float* in, float* out, Defects planted) {
  SHARDWISE_SHARED(float, row, kThreads);
  const int thread = static_cast<int>(threadIdx.x);
  for (int r = 0; r < 2; ++r) {
    row[thread + (planted.beyond_shared ? 1 : 0)] =
        in[r * kThreads + thread + (planted.beyond_global ? 1 : 0)];
    if (!planted.no_barrier && !(planted.half_a_barrier && thread < 32)) __syncthreads();
    out[r * kThreads + thread] = row[kThreads - 1 - thread];
    if (!planted.no_second_barrier) __syncthreads();
  }
}

std::vector<float> turned(const Defects& planted, std::uint64_t seed) {
  const std::vector<float> in = random_floats(kTwoRows, 1);
  std::vector<float> out = unwritten<float>(kTwoRows);
  host_cuda::set_seed(seed);
  launch(nullptr, "turn_rows", dim3(1), dim3(kThreads), turn_rows, in.data(), out.data(), planted);
  return out;
}
std::vector<float> expected_rows() {
  const std::vector<float> in = random_floats(kTwoRows, 1);
  std::vector<float> out;
  for (int r = 0; r < 2; ++r) {
    for (int i = kThreads - 1; i >= 0; --i) {
      out.push_back(in[static_cast<std::size_t>(r) * kThreads + static_cast<std::size_t>(i)]);
    }
  }
  return out;
}
int wrong_of(const Defects& planted, int orders) {
  int wrong = 0;
  for (int seed = 1; seed <= orders; ++seed) {
    wrong += turned(planted, static_cast<std::uint64_t>(seed)) == expected_rows() ? 0 : 1;
  }
  return wrong;
}

#define EXPECT_RACE(statement)     \
  EXPECT_EXIT(                     \
      {                            \
        host_cuda::exit_at_race(); \
        statement;                 \
      },                           \
      testing::ExitedWithCode(host_cuda::kRaceStatus), "data race")

TEST(HostCuda, RunsAKernelInEveryOrder) { EXPECT_EQ(wrong_of({}, 40), 0); }

TEST(HostCuda, GivesAnotherResultInSomeOrderWithoutABarrier) {
  const Defects planted = {.no_barrier = true};
  if (host_cuda::races_are_watched()) {
    EXPECT_RACE(turned(planted, 1));
  } else {
    EXPECT_GT(wrong_of(planted, 40), 30);
  }
}

TEST(HostCuda, SeesThatSharedMemoryIsReusedTooEarly) {
  const Defects planted = {.no_second_barrier = true};
  if (host_cuda::races_are_watched()) {
    EXPECT_RACE(turned(planted, 1));
  } else {
    EXPECT_GT(wrong_of(planted, 40), 30);
  }
}

TEST(HostCuda, NamesABarrierThatNotAllThreadsComeTo) {
  EXPECT_DEATH(turned({.half_a_barrier = true}, 1), "turn_rows.*deadlock in __syncthreads");
}

TEST(HostCuda, SeesAnIndexBeyondSharedAndGlobalMemory) {
  const Defects shared_memory = {.beyond_shared = true};
  const Defects global_memory = {.beyond_global = true};
  if (test::kSanitized && !host_cuda::races_are_watched()) {
    EXPECT_DEATH(turned(shared_memory, 1), "use-after-poison");
    EXPECT_DEATH(turned(global_memory, 1), "heap-buffer-overflow");
  } else {
    EXPECT_EQ(wrong_of(shared_memory, 10), 10);
  }
}

/// The sum of all threads' numbers, in the order in which they come.
__global__ void sum_as_they_come(const float* in, float* sum) { *sum += in[threadIdx.x]; }
/// The same in an order of its own.
__global__ void sum_in_order(const float* in, float* sum) {
  SHARDWISE_SHARED(float, places, Team<kThreads>::kPlaces);
  const float all = Team<kThreads>(places).sum(in[threadIdx.x]);
  if (threadIdx.x == 0) *sum = all;
}
std::size_t different_sums(void (*kernel)(const float*, float*)) {
  const std::vector<float> in = random_floats(kThreads, 2);
  std::set<float> sums;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    host_cuda::set_seed(seed);
    float sum = 0;
    launch(nullptr, "sum", dim3(1), dim3(kThreads), kernel, in.data(), &sum);
    sums.insert(sum);
  }
  return sums.size();
}

TEST(HostCuda, ShowsThatASumDependsOnTheOrderOfThreads) {
  EXPECT_EQ(different_sums(sum_in_order), 1U);
  if (host_cuda::races_are_watched()) {
    EXPECT_RACE(different_sums(sum_as_they_come));
  } else {
    EXPECT_GT(different_sums(sum_as_they_come), 5U);
  }
}

/// Lane 0 writes, a shuffle makes the others wait for it, and all read.
__global__ void read_after_shuffle(float* out, bool sync) {
  SHARDWISE_SHARED(float, place, 1);
  if (threadIdx.x == 0) place[0] = 3;
  const int zero = __shfl_sync(kWholeWarp, 0, 0);
  if (sync) __syncwarp();
  out[threadIdx.x] = place[zero];
}
void run_read_after_shuffle(bool sync) {
  std::vector<float> out = unwritten<float>(kWarp);
  launch(nullptr, "read_after_shuffle", dim3(1), dim3(kWarp), read_after_shuffle, out.data(), sync);
  EXPECT_EQ(out, std::vector<float>(kWarp, 3.0F));
}

TEST(HostCuda, DoesNotTakeAShuffleForAnOrderOfMemory) {
  run_read_after_shuffle(true);
  if (!host_cuda::races_are_watched()) GTEST_SKIP() << "takes the thread sanitizer";
  EXPECT_RACE(run_read_after_shuffle(false));
}

__global__ void write_one(float* out) { *out = static_cast<float>(blockIdx.x); }

TEST(HostCuda, SeesThatTwoBlocksWriteTheSamePlace) {
  if (!host_cuda::races_are_watched()) GTEST_SKIP() << "takes the thread sanitizer";
  float out = 0;
  EXPECT_RACE(launch(nullptr, "write_one", dim3(2), dim3(1), write_one, &out));
}

__global__ void read_shared(float* out) {
  SHARDWISE_SHARED(float, place, 4);
  *out = place[2];
}

TEST(HostCuda, GivesNotANumberForSharedMemoryThatNobodyWrote) {
  float out = 0;
  launch(nullptr, "read_shared", dim3(1), dim3(1), read_shared, &out);
  EXPECT_TRUE(std::isnan(out));
}

__global__ void read_lane(int from, unsigned mask) { __shfl_sync(mask, 1.0F, from); }
__global__ void two_masks() { __syncwarp(threadIdx.x < 16 ? kWholeWarp : 0xffff0000U); }

TEST(HostCuda, RefusesALaneThatIsNotThereAndMasksThatDiffer) {
  launch(nullptr, "read_lane", dim3(1), dim3(kWarp), read_lane, 31, kWholeWarp);
  EXPECT_DEATH(launch(nullptr, "read_lane", dim3(1), dim3(8), read_lane, 9, 0xffU),
               "read_lane.*reads lane 9");
  EXPECT_DEATH(launch(nullptr, "read_lane", dim3(1), dim3(8), read_lane, 9, kWholeWarp),
               "deadlock in __shfl_sync");
  EXPECT_DEATH(launch(nullptr, "two_masks", dim3(1), dim3(kWarp), two_masks), "__syncwarp with");
}

__global__ void sum_halves(float* out) {
  const unsigned lanes = threadIdx.x < 16 ? 0xffffU : 0xffff0000U;
  float sum = 1.0F + static_cast<float>(threadIdx.x);
  for (int round = 0; round < (threadIdx.x < 16 ? 1 : 3); ++round) {  // the halves go apart
    for (int by = 8; by > 0; by /= 2) sum += __shfl_xor_sync(lanes, sum, by);
  }
  out[threadIdx.x] = sum;
}

TEST(HostCuda, HasHalvesOfAWarpMeetApart) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    host_cuda::set_seed(seed);
    std::vector<float> out(kWarp);
    launch(nullptr, "sum_halves", dim3(1), dim3(kWarp), sum_halves, out.data());
    EXPECT_EQ(out.front(), 16 * 17 / 2);
    EXPECT_EQ(out.back(), 16 * (17 + 32) / 2 * 256);
  }
}

TEST(HostCuda, RefusesMoreThreadsThanABlockHas) {
  float out = 0;
  EXPECT_DEATH(launch(nullptr, "write_one", dim3(1), dim3(1025), write_one, &out), "1025 threads");
}

/// c [16, 8] = a [16, 16] b [16, 8], all row by row, by matrices read from shared memory: a as it
/// is, b transposed where it is read, as [n, k] where it `is_turned` already.
__global__ void small_product(const Bf16* a, const Bf16* b, bool is_turned, float* c) {
  SHARDWISE_SHARED(Vector<Bf16>, rows, 64);
  const std::ptrdiff_t lane = threadIdx.x;
  const std::ptrdiff_t wide_b = is_turned ? 16 : 8;
  Bf16* const a_rows = rows[0].at;
  Bf16* const b_rows = a_rows + 256;
  for (std::ptrdiff_t i = lane; i < 256; i += kWarp) a_rows[i] = a[i];
  for (std::ptrdiff_t i = lane; i < 128; i += kWarp) b_rows[i] = b[i];
  __syncwarp();
  LeftFragment left;
  RightFragments right;
  load_matrices<false>(a_rows + lane % 16 * 16 + lane / 16 * 8, left.at);
  if (is_turned) {
    load_matrices<false>(b_rows + lane % 8 * wide_b + lane / 8 % 2 * 8, right.at);
  } else {
    load_matrices<true>(b_rows + lane % 16 * wide_b, right.at);
  }
  SumFragment sums = {};
  multiply(left, right, 0, sums);
  for (std::ptrdiff_t i = 0; i < 4; ++i) {
    c[(lane / 4 + i / 2 * 8) * 8 + 2 * (lane % 4) + i % 2] = sums.at[i];
  }
}

TEST(HostCuda, MultipliesFragmentsAsTheyAreDefined) {
  const std::vector<Bf16> a = rounded(random_floats(256, 1));
  const std::vector<Bf16> b = rounded(random_floats(128, 2));
  for (const bool is_turned : {false, true}) {
    Doubles expected(128);
    std::vector<Bf16> given = b;
    for (std::size_t m = 0; m < 16; ++m) {
      for (std::size_t n = 0; n < 8; ++n) {
        for (std::size_t k = 0; k < 16; ++k) {
          given[is_turned ? n * 16 + k : k * 8 + n] = b[k * 8 + n];
          expected[m * 8 + n] += static_cast<double>(to_float(a[m * 16 + k])) *
                                 static_cast<double>(to_float(b[k * 8 + n]));
        }
      }
    }
    std::vector<float> c = unwritten<float>(128);
    launch(nullptr, "small_product", dim3(1), dim3(kWarp), small_product, a.data(), given.data(),
           is_turned, c.data());
    expect_close(c, expected, 1.2e-7, "c");  // one rounding
  }
}

__global__ void half_a_product() {
  SumFragment sums = {};
  if (threadIdx.x < 16) multiply({}, {}, 0, sums);
}

TEST(HostCuda, NamesAProductThatNotAllLanesComeTo) {
  EXPECT_DEATH(launch(nullptr, "half_a_product", dim3(1), dim3(kWarp), half_a_product),
               "half_a_product.*deadlock in mma.sync");
}

/// What is planted in a copy of numbers by way of shared memory, which two tiles of them have.
struct CopyDefects {
  bool no_wait = false;
  bool no_barrier = false;
  bool no_second_barrier = false;
  bool beyond = false;
  bool odd = false;
};

/// out [2, threads] = in [2, threads], each row turned round.
__global__ void turn_copies(const float* in, float* out, CopyDefects planted) {
  SHARDWISE_SHARED(float, row, kThreads + 1);
  const int thread = static_cast<int>(threadIdx.x);
  for (int r = 0; r < 2; ++r) {
    const float* const from = &in[r * kThreads + thread + (planted.beyond ? 1 : 0)];
    char* const to = reinterpret_cast<char*>(row + thread) + (planted.odd ? 2 : 0);
    copy_async<4>(to, from, thread != 5);
    if (!planted.no_wait) wait_for_copies();
    if (!planted.no_barrier) __syncthreads();
    out[r * kThreads + thread] = row[kThreads - 1 - thread];
    if (!planted.no_second_barrier) __syncthreads();
  }
  if (planted.no_wait) wait_for_copies();
}
std::vector<float> copied(const CopyDefects& planted) {
  const std::vector<float> in = random_floats(kTwoRows, 1);
  std::vector<float> out = unwritten<float>(kTwoRows);
  host_cuda::set_seed(1);
  launch(nullptr, "turn_copies", dim3(1), dim3(kThreads), turn_copies, in.data(), out.data(),
         planted);
  return out;
}

TEST(HostCuda, CopiesWhenTheyAreWaitedFor) {
  std::vector<float> expected = expected_rows();
  for (std::size_t r = 0; r < 2; ++r) expected[(r + 1) * kThreads - 6] = 0;  // nothing was there
  EXPECT_EQ(copied({}), expected);
}

TEST(HostCuda, ShowsACopyThatNobodyHasWaitedFor) {
  for (const float each : copied({.no_wait = true})) EXPECT_TRUE(std::isnan(each));
}

__global__ void never_wait(const float* in) {
  SHARDWISE_SHARED(float, place, 1);
  copy_async<4>(place, in, true);
}

TEST(HostCuda, NamesAThreadThatEndsBeforeItsCopies) {
  const float in = 1;
  EXPECT_DEATH(launch(nullptr, "never_wait", dim3(1), dim3(1), never_wait, &in),
               "never_wait.*1 copies not waited for");
}

TEST(HostCuda, RefusesACopyToAnAddressThatItsSizeDoesNotDivide) {
  EXPECT_DEATH(copied({.odd = true}), "cp.async of 4 bytes at another address");
}

TEST(HostCuda, SeesThatCopiesNeedABarrierBeforeAndAfterTheyAreRead) {
  if (!host_cuda::races_are_watched()) GTEST_SKIP() << "takes the thread sanitizer";
  EXPECT_RACE(copied({.no_barrier = true}));
  EXPECT_RACE(copied({.no_second_barrier = true}));
}

TEST(HostCuda, SeesThatACopyReadsBeyondMemory) {
  if (!test::kSanitized || host_cuda::races_are_watched()) {
    GTEST_SKIP() << "takes the address sanitizer";
  }
  EXPECT_DEATH(copied({.beyond = true}), "heap-buffer-overflow");
}

TEST(HostCuda, HandsLaunchesToWhoAsksForThem) {
  std::vector<std::string> names;
  host_cuda::set_enqueue([&](cudaStream_t, const char* name, dim3 grid, dim3 block, std::size_t,
                             const std::function<void()>& thread) {
    names.emplace_back(name);
    host_cuda::run_grid(grid, block, 0, thread, name);
    return static_cast<const char*>(nullptr);
  });
  float out = 0;
  launch(nullptr, "write_one", dim3(1), dim3(1), write_one, &out);
  host_cuda::set_enqueue({});
  launch(nullptr, "write_one", dim3(1), dim3(1), write_one, &out);
  EXPECT_EQ(names, std::vector<std::string>{"write_one"});
}

}  // namespace
}  // namespace shardwise::exec::cuda
