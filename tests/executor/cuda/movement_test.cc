#include "executor/kernels/cuda/movement.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "executor/kernels/compute/cpu_compute.h"
#include "tests/executor/cuda/on_host.h"

namespace shardwise::exec {
namespace {

constexpr std::byte kPoisonedByte{0xff};
using Sizes = std::initializer_list<std::size_t>;
constexpr DType kBoth[] = {DType::fp32, DType::bf16};

/// A tensor in memory of its own, as large as it is, from a place that vectors may not be read at.
class Tensor {
 public:
  Tensor(DType type, std::size_t number, std::size_t beside = 0)
      : bytes((number + beside) * static_cast<std::size_t>(bytes_of(type)), kPoisonedByte),
        dtype_(type),
        count_(number) {}
  Tensor(DType type, const Floats& values, std::size_t beside = 0)
      : Tensor(type, values.size(), beside) {
    exec::cast(view(), ConstTensorView(values));
  }

  TensorView view() { return {bytes.data() + beside(), count_, dtype_}; }
  ConstTensorView view() const { return {bytes.data() + beside(), count_, dtype_}; }

  /// Of fp32 and bf16 numbers the bits, of every NaN the same: arithmetic on a GPU gives one of its
  /// own where the CPU keeps the operand's.
  std::vector<std::uint32_t> bits() const {
    Floats wide(count_);
    exec::cast(TensorView(wide), view());
    std::vector<std::uint32_t> made;
    for (const float each : wide)
      made.push_back(std::isnan(each) ? ~0U : std::bit_cast<std::uint32_t>(each));
    return made;
  }

  std::vector<std::byte> bytes;

 private:
  std::size_t beside() const {
    return bytes.size() - count_ * static_cast<std::size_t>(bytes_of(dtype_));
  }

  DType dtype_;
  std::size_t count_;
};

/// What the CPU makes of the same operation.
struct Cpu {
  Workers workers{1};
  CpuCompute compute{workers};
  DeviceStream stream;
};

Floats with_specials(Floats values) {
  const float specials[] = {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1e-42F, 3.4e38F};
  for (std::size_t i = 0; i < std::size(specials) && i < values.size(); ++i) {
    values[values.size() - 1 - i] = specials[i];
  }
  return values;
}

/// Calls f(count, beside) for sizes around a chunk, a block and an in-place range.
template <class F>
void for_sizes(F f) {
  for (const std::size_t count : Sizes{1, 7, 1030, 2048, 2051}) {
    for (const std::size_t beside : Sizes{0, 1}) {
      SCOPED_TRACE(testing::Message() << count << " elements, " << beside << " beside");
      host_cuda::set_seed(count + beside + 1);
      f(count, beside);
    }
  }
}
Floats drawn(std::size_t count, unsigned seed) {
  return random_floats(static_cast<std::int64_t>(count), seed);
}

TEST(CudaMovement, HasTheCpusBitsForAnySizeAndPlace) {
  Cpu cpu;
  const Floats factor(1, 0.37F);
  for_sizes([&](std::size_t count, std::size_t beside) {
    for (const DType a : kBoth) {
      Tensor cleared(a, count, beside);
      Tensor cpu_cleared = cleared;
      cuda::clear(cleared.view(), nullptr);
      cpu.compute.clear(cpu_cleared.view(), cpu.stream);
      EXPECT_EQ(cleared.bytes, cpu_cleared.bytes);
      Tensor scaled(a, with_specials(drawn(count, 1)), beside);
      Tensor cpu_scaled = scaled;
      cuda::scale({scaled.view(), factor.data()}, nullptr);
      cpu.compute.scale({cpu_scaled.view(), factor.data()}, cpu.stream);
      EXPECT_EQ(scaled.bits(), cpu_scaled.bits());
      for (const DType b : kBoth) {
        const Tensor from(b, with_specials(drawn(count, 2)), beside);
        Tensor to(a, count, beside);
        Tensor cpu_to = to;
        cuda::cast(to.view(), from.view(), nullptr);
        cpu.compute.cast(cpu_to.view(), from.view(), cpu.stream);
        EXPECT_EQ(to.bits(), cpu_to.bits());
        Tensor sum(a, drawn(count, 3), beside);
        Tensor cpu_sum = sum;
        cuda::accumulate(sum.view(), from.view(), nullptr);
        cpu.compute.accumulate(cpu_sum.view(), from.view(), cpu.stream);
        EXPECT_EQ(sum.bits(), cpu_sum.bits());
      }
    }
  });
}

TEST(CudaMovement, DividesByTheTokensOfAllRanks) {
  const std::vector<std::int64_t> tokens = {3, 0, 5};
  Floats factors(2, NAN);
  cuda::token_factor({tokens.data(), 3, factors.data()}, nullptr);
  cuda::token_factor({&tokens[1], 1, &factors[1]}, nullptr);
  EXPECT_EQ(factors, (Floats{0.125F, 1}));
}

TEST(CudaMovement, LaunchesNothingForEmptyTensors) {
  if (kOnGpu) GTEST_SKIP() << "launches are counted on the host";
  int launches = 0;
  host_cuda::set_enqueue(
      [&](cudaStream_t, const char*, dim3, dim3, std::size_t, const std::function<void()>&) {
        ++launches;
        return static_cast<const char*>(nullptr);
      });
  Tensor empty(DType::fp32, 0);
  const Tensor other(DType::bf16, 0);
  cuda::clear(empty.view(), nullptr);
  cuda::cast(empty.view(), other.view(), nullptr);
  cuda::accumulate(empty.view(), other.view(), nullptr);
  cuda::scale({empty.view(), nullptr}, nullptr);
  cuda::sum_ranks({other.view(), 8, 2, empty.view(), empty.view(), false}, nullptr);
  cuda::adamw({}, nullptr);
  host_cuda::set_enqueue({});
  EXPECT_EQ(launches, 0);
}

/// Casts a tensor where it is, and expects what a copy elsewhere becomes.
void expect_cast_in_place(DType from, DType to, std::size_t count) {
  Tensor fp32(DType::fp32, drawn(count, 4));
  const Tensor before(from, drawn(count, 4));
  std::memcpy(fp32.bytes.data(), before.bytes.data(), before.bytes.size());
  Tensor expected(to, count);
  exec::cast(expected.view(), before.view());
  cuda::cast({fp32.bytes.data(), count, to}, {fp32.bytes.data(), count, from}, nullptr);
  EXPECT_EQ(std::memcmp(fp32.bytes.data(), expected.bytes.data(), expected.bytes.size()), 0);
}

TEST(CudaMovement, CastsATensorWhereItIs) {
  for (const std::size_t count : Sizes{1, 37, 2048, 2049, 4096, 4100, 17000}) {
    if (host_cuda::races_are_watched() && count > 5000) continue;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(testing::Message() << count << " elements, order " << seed);
      host_cuda::set_seed(seed);
      expect_cast_in_place(DType::fp32, DType::bf16, count);
      expect_cast_in_place(DType::bf16, DType::fp32, count);
    }
  }
}

TEST(CudaMovement, NeedsTheBarrierOfACastInPlace) {
  expect_every_barrier_is_needed([] { expect_cast_in_place(DType::fp32, DType::bf16, 300); });
  expect_every_barrier_is_needed([] { expect_cast_in_place(DType::bf16, DType::fp32, 300); });
}

/// Without watching races the missing barrier is seen by what becomes of the numbers.
TEST(CudaMovement, GivesOtherNumbersWithoutTheBarrierOfACastInPlace) {
  if (test::kSanitized || kOnGpu) GTEST_SKIP() << "races are watched, or slow";
  constexpr std::size_t kCount = 2000;
  const Tensor before(DType::fp32, drawn(kCount, 4));
  Tensor expected(DType::bf16, kCount);
  exec::cast(expected.view(), before.view());
  int wrong = 0;
  host_cuda::leave_out_barrier(0);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    host_cuda::set_seed(seed);
    Tensor each = before;
    cuda::cast({each.bytes.data(), kCount, DType::bf16}, each.view(), nullptr);
    wrong += std::memcmp(each.bytes.data(), expected.bytes.data(), 2 * kCount) == 0 ? 0 : 1;
  }
  host_cuda::leave_out_barrier(-1);
  EXPECT_GT(wrong, 15);
}

TEST(CudaSumRanks, HasTheCpusBitsInTheOrderOfRanks) {
  Cpu cpu;
  constexpr std::size_t kRanks = 3;
  for_sizes([&](std::size_t count, std::size_t beside) {
    const std::size_t stride = count + 8 - count % 8 + beside;
    for (const DType a : kBoth) {
      const Tensor pieces(a, drawn(kRanks * stride, 5), beside);
      for (const DType b : kBoth) {
        for (const bool joins : {false, true}) {
          Tensor shard(b, drawn(count, 6), beside);
          Tensor cpu_shard = shard;
          Tensor sums(DType::fp32, count);
          SumRanksWork work = {pieces.view(), static_cast<std::int64_t>(stride),
                               kRanks,        sums.view(),
                               shard.view(),  joins};
          cuda::sum_ranks(work, nullptr);
          work.shard = cpu_shard.view();
          cpu.compute.sum_ranks(work, cpu.stream);
          EXPECT_EQ(shard.bytes, cpu_shard.bytes);
        }
      }
    }
  });
}

}  // namespace
}  // namespace shardwise::exec
