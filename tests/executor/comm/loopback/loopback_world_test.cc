// Ranks of one process that share a GPU, on a fake of CUDA's runtime whose streams run in random
// legal orders.
#include "executor/comm/loopback_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/device/cuda/cuda_device.h"
#include "executor/kernels/element.h"
#include "tests/executor/support/stream_compute.h"
#include "tests/support/host_cuda/fake_cuda.h"
#include "tests/support/host_cuda/host_cuda.h"

namespace shardwise::exec::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kShard = 5;

/// Values that no other rank or element has, whose sums depend on their order.
std::vector<float> values_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = 1.0F / (1.0F + static_cast<float>(rank) * 7.3F + static_cast<float>(i) * 0.37F);
  }
  return values;
}
std::vector<Bf16> narrow_values_of(int rank, std::size_t count) {
  std::vector<Bf16> values;
  for (const float each : values_of(rank, count)) values.push_back(from_float<Bf16>(each));
  return values;
}
TensorView narrow(std::vector<Bf16>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size(), DType::bf16};
}

/// The buffers of a rank, which must outlive its streams. The last of its pieces is short.
struct Step {
  Step(int own_rank, int ranks)
      : rank(own_rank),
        gathered(values_of(own_rank, all(ranks))),
        reduced(values_of(own_rank, all(ranks))),
        joined(values_of(own_rank + 20, own().count)),
        summed(values_of(own_rank, 17)),
        received(static_cast<std::size_t>(kShard * ranks), -1),
        next(3, -1),
        narrow_sent(narrow_values_of(own_rank, all(ranks))),
        narrow_summed(narrow_values_of(own_rank, 8)),
        wide_of_narrow(values_of(own_rank + 30, own().count)) {}

  static std::size_t all(int ranks) { return static_cast<std::size_t>(kShard * ranks - 2); }
  Piece own() const { return piece_of(std::ssize(gathered), kShard, rank); }

  /// Every call, each reading what the one before it left.
  void issue(Communicator& group, DeviceStream& stream) {
    const Piece piece = own();
    const TensorView whole(gathered);
    const TensorView sums(reduced);
    group.all_gather(whole.part(piece.begin, piece.count), gathered, kShard, stream);
    group.reduce_scatter(reduced, sums.part(piece.begin, piece.count), kShard, false, stream);
    group.reduce_scatter(gathered, joined, kShard, true, stream);
    group.all_gather(sums.part(piece.begin, piece.count), gathered, kShard, stream);
    group.all_reduce(summed, stream);
    group.all_reduce(narrow(narrow_summed), stream);
    group.reduce_scatter(narrow(narrow_sent), wide_of_narrow, kShard, true, stream);
    group.all_to_all(gathered, received, kShard, stream);
    const TensorView places(next);
    const int right = (group.rank() + 1) % group.size();
    const int left = (group.rank() + group.size() - 1) % group.size();
    const Message messages[] = {{right, ConstTensorView(TensorView(received)).part(0, 2), {}},
                                {left, {}, places.part(0, 2)},
                                {left, ConstTensorView(TensorView(summed)).part(0, 1), {}},
                                {right, {}, places.part(2, 1)}};
    group.send_receive(messages, stream);
    // Written again, by which time nobody reads it any more.
    group.all_reduce(gathered, stream);
  }
  std::vector<std::vector<float>> results() const {
    const Piece piece = own();
    std::vector<float> wide;
    for (const Bf16 each : narrow_summed) wide.push_back(to_float(each));
    const auto mine = reduced.begin() + static_cast<std::ptrdiff_t>(piece.begin);
    return {gathered, {mine, mine + static_cast<std::ptrdiff_t>(piece.count)},
            joined,   summed,
            received, next,
            wide,     wide_of_narrow};
  }

  int rank;
  std::vector<float> gathered;
  std::vector<float> reduced;
  std::vector<float> joined;
  std::vector<float> summed;
  std::vector<float> received;
  std::vector<float> next;
  std::vector<Bf16> narrow_sent;
  std::vector<Bf16> narrow_summed;
  std::vector<float> wide_of_narrow;
};
using Results = std::vector<std::vector<std::vector<float>>>;  // by rank

Results of_threads(int ranks) {
  Results results(static_cast<std::size_t>(ranks));
  AbortSignal abort;
  run_ranks(ranks, abort, [&](World& world) {
    Step step(world.rank(), ranks);
    DeviceStream stream;
    step.issue(*world.communicator(all_ranks(world), Stream::compute), stream);
    results[static_cast<std::size_t>(world.rank())] = step.results();
  });
  return results;
}

/// A GPU one of whose waits does nothing.
class ForgetfulDevice : public CudaDevice {
 public:
  ForgetfulDevice(int rank, int forgotten) : CudaDevice(0, rank), forgotten_(forgotten) {}
  void wait(DeviceStream& stream, const DeviceEvent& event) override {
    if (waits_++ != forgotten_) CudaDevice::wait(stream, event);
  }
  int waits() const { return waits_; }

 private:
  int forgotten_;
  int waits_ = 0;
};

/// A job of ranks that share a GPU.
struct Job {
  int ranks = 2;
  std::uint64_t seed = 0;
  int forgotten = -1;  // number of the wait of rank 0 that is left out
  int waits = 0;       // of rank 0
};
using Body = std::function<void(World&, DeviceStream&, DeviceStream&)>;

/// \returns why it failed, empty when it did not
std::string run_job(Job& job, const Body& body) {
  fake_cuda::reset(job.seed);
  fake_cuda::set_hosts(job.ranks);
  AbortSignal abort;
  try {
    run_ranks(
        job.ranks, abort,
        [&](World& threads) {
          const bool forgets = threads.rank() == 0;
          ForgetfulDevice device(threads.rank(), forgets ? job.forgotten : -1);
          StreamCompute compute;
          LoopbackWorld world(threads, device, compute);
          const auto stream = device.stream(StreamPriority::high);
          const auto beside = device.stream(StreamPriority::normal);
          body(world, *stream, *beside);
          device.synchronize(*stream);
          device.synchronize(*beside);
          if (forgets) job.waits = device.waits();
          // None ends while others read its memory.
          all_gather_texts(*world.control_group(all_ranks(world), Control::results), "");
        },
        std::chrono::seconds(60));
  } catch (const std::exception& broken) {
    return broken.what();
  }
  return {};
}

/// Every call on two streams at once.
Results of_loopback(Job& job, bool* beside_too = nullptr) {
  std::vector<std::unique_ptr<Step>> one(static_cast<std::size_t>(job.ranks));
  std::vector<std::unique_ptr<Step>> other(static_cast<std::size_t>(job.ranks));
  const std::string why =
      run_job(job, [&](World& world, DeviceStream& stream, DeviceStream& beside) {
        const auto rank = static_cast<std::size_t>(world.rank());
        one[rank] = std::make_unique<Step>(world.rank(), job.ranks);
        other[rank] = std::make_unique<Step>(world.rank(), job.ranks);
        one[rank]->issue(*world.communicator(all_ranks(world), Stream::reduce_scatter), stream);
        other[rank]->issue(*world.communicator(all_ranks(world), Stream::all_gather), beside);
      });
  EXPECT_EQ(why, "");
  Results results;
  bool same = true;
  for (std::size_t rank = 0; rank < one.size(); ++rank) {
    results.push_back(one[rank]->results());
    same = same && other[rank]->results() == results.back();
  }
  if (beside_too != nullptr) *beside_too = same;
  return results;
}

TEST(LoopbackWorld, GivesTheBitsOfThreadsInAnyOrderOfStreams) {
  for (const int ranks : {1, 2, 3, 4}) {
    const Results expected = of_threads(ranks);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Job job = {.ranks = ranks, .seed = seed};
      bool beside_too = false;
      EXPECT_EQ(of_loopback(job, &beside_too), expected) << ranks << " ranks, seed " << seed;
      EXPECT_TRUE(beside_too) << ranks << " ranks, seed " << seed;
      EXPECT_THAT(fake_cuda::complaints(), IsEmpty());
      EXPECT_EQ(fake_cuda::left_over(), "");
    }
  }
}

TEST(LoopbackWorld, PromisesWhatThreadsPromise) {
  Job job;
  EXPECT_EQ(run_job(job,
                    [](World& world, DeviceStream&, DeviceStream&) {
                      EXPECT_EQ(world.communicator({0, 1}, Stream::all_gather)->traits(),
                                (CommunicatorTraits{true, true, true}));
                    }),
            "");
}

/// Collectives of buffers that each rank's stream fills before and after.
struct Refilled {
  static constexpr int kKinds = 4;
  explicit Refilled(int ranks)
      : sent(static_cast<std::size_t>(kShard * ranks)), received(sent.size()), sums(sent.size()) {}

  void issue(Communicator& group, DeviceStream& stream) {
    for (int kind = 0; kind < kKinds; ++kind) {
      fill(group.rank() + 10 * kind, stream);
      const TensorView all(sent);
      const auto own = static_cast<std::size_t>(group.rank() * kShard);
      if (kind == 0) group.all_gather(all.part(own, kShard), received, kShard, stream);
      if (kind == 1) {
        group.reduce_scatter(all, TensorView(received).part(0, kShard), kShard, false, stream);
      }
      if (kind == 2) group.all_to_all(all, received, kShard, stream);
      if (kind == 3) group.all_reduce(all, stream);
      enqueue_host(stream, "add", [this, kind] { accumulate(sums, kind == 3 ? sent : received); });
    }
    fill(-1, stream);
  }
  void fill(int with, DeviceStream& stream) {
    enqueue_host(stream, "fill", [this, with] {
      const std::vector<float> values = values_of(with, sent.size());
      std::ranges::copy(values, sent.begin());
    });
  }

  std::vector<float> sent;
  std::vector<float> received;
  std::vector<float> sums;
};

/// What rank 0 and rank 1 have in the end.
std::vector<std::vector<float>> refilled_by(Job& job) {
  std::vector<std::unique_ptr<Refilled>> all;
  for (int rank = 0; rank < job.ranks; ++rank) all.push_back(std::make_unique<Refilled>(job.ranks));
  const std::string why = run_job(job, [&](World& world, DeviceStream& stream, DeviceStream&) {
    const auto group = world.communicator(all_ranks(world), Stream::compute);
    all[static_cast<std::size_t>(world.rank())]->issue(*group, stream);
    // Kept until its stream is over.
    cuda_stream(stream).synchronize();
  });
  EXPECT_EQ(why, "");
  return {all[0]->sums, all[1]->sums};
}

/// Ends the process. Two threads that happen to run one after the other race unseen, so it takes
/// several orders of streams.
[[noreturn]] void refill_in_some_orders(int forgotten) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Job job = {.seed = seed, .forgotten = forgotten};
    refilled_by(job);
  }
  std::exit(0);
}

// Each collective waits for the other rank's tensors and until that has read, and an all-reduce
// until it has summed: without one of these waits numbers differ in some order of streams.
TEST(LoopbackWorld, WouldShowAWaitLeftOut) {
  Job whole;
  const std::vector<std::vector<float>> expected = refilled_by(whole);
  ASSERT_EQ(whole.waits, 2 * Refilled::kKinds + 1);
  for (int forgotten = 0; forgotten < whole.waits; ++forgotten) {
    if (host_cuda::races_are_watched()) {
      EXPECT_EXIT(refill_in_some_orders(forgotten), testing::ExitedWithCode(host_cuda::kRaceStatus),
                  "data race")
          << "wait " << forgotten;
      continue;
    }
    bool shown = false;
    for (std::uint64_t seed = 0; seed < 300 && !shown; ++seed) {
      Job job = {.seed = seed, .forgotten = forgotten};
      shown = refilled_by(job) != expected;
    }
    EXPECT_TRUE(shown) << "wait " << forgotten;
  }
}

TEST(LoopbackWorld, NamesCollectivesThatRanksIssueInDifferentOrderOrSize) {
  std::vector<std::vector<float>> buffers(2, std::vector<float>(16));
  for (const bool order : {true, false}) {
    Job job;
    const std::string why = run_job(job, [&](World& world, DeviceStream& stream, DeviceStream&) {
      const auto group = world.communicator({0, 1}, Stream::compute);
      const TensorView all(buffers[static_cast<std::size_t>(group->rank())]);
      if (order && group->rank() == 0) {
        group->all_gather(all.part(0, 8), all, 8, stream);
      } else {
        group->all_reduce(all.part(0, group->rank() == 0 ? 16 : 12), stream);
      }
    });
    EXPECT_THAT(why, testing::ContainsRegex(
                         order ? "rank [01]: issues all_[a-z]+ of (16|12) fp32 where member [01] "
                                 "of its group issues all_[a-z]+ of (16|12) fp32"
                               : "rank [01]: issues all_reduce of (16|12) fp32 where member [01] "
                                 "of its group issues all_reduce of (16|12) fp32"));
  }
}

// A rank that waits for another's event cannot be captured: CUDA says so, and the fake.
TEST(LoopbackWorld, CannotBeCaptured) {
  std::vector<std::vector<float>> buffers(2, std::vector<float>(16));
  Job job;
  const std::string why = run_job(job, [&](World& world, DeviceStream& stream, DeviceStream&) {
    const auto group = world.communicator({0, 1}, Stream::compute);
    const cudaStream_t handle = cuda_stream(stream).handle();
    const CudaCalls calls(world.rank());
    calls.check(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal), "begin");
    const auto end = [handle] {
      cudaGraph_t none = nullptr;
      static_cast<void>(cudaStreamEndCapture(handle, &none));
    };
    try {
      group->all_reduce(buffers[static_cast<std::size_t>(group->rank())], stream);
    } catch (...) {
      end();
      throw;
    }
    end();
  });
  EXPECT_THAT(why, HasSubstr("cudaStreamWaitEvent"));
  EXPECT_THAT(fake_cuda::complaints(),
              Contains(HasSubstr("waits for an event of another capture")));
}

}  // namespace
}  // namespace shardwise::exec::test
