#include "executor/comm/thread_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "executor/comm/failure_line.h"
#include "executor/comm/thread_group.h"
#include "executor/kernels/start_thread.h"
#include "executor/storage/bad_input.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
class ThreadWorld : public World {
 public:
  ThreadWorld(ThreadRanks& ranks, int rank) : ranks_(ranks), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return ranks_.size(); }
  CommunicatorTraits traits() const override { return kAllTraits; }
  std::unique_ptr<ControlGroup> control_group(const std::vector<std::int64_t>& ranks,
                                              Control control) override {
    return std::make_unique<ThreadControlGroup>(end(ranks, control));
  }
  std::unique_ptr<Communicator> communicator(const std::vector<std::int64_t>& ranks,
                                             Stream stream) override {
    return std::make_unique<ThreadCommunicator>(end(ranks, stream));
  }

 private:
  ThreadEnd end(const std::vector<std::int64_t>& ranks, Channel channel) const {
    const auto self = std::ranges::find(ranks, std::int64_t{rank_});
    SHARDWISE_CHECK(self != ranks.end(), "a rank joins groups that it is part of");
    return {ranks_.barrier(ranks, channel), static_cast<int>(self - ranks.begin())};
  }

  ThreadRanks& ranks_;
  int rank_;
};

ThreadRanks::ThreadRanks(int size, AbortSignal& abort, std::chrono::milliseconds patience)
    : size_(size), abort_(abort), patience_(patience) {}

std::unique_ptr<World> ThreadRanks::world(int rank) {
  return std::make_unique<ThreadWorld>(*this, rank);
}

std::shared_ptr<Barrier> ThreadRanks::barrier(const std::vector<std::int64_t>& ranks,
                                              Channel channel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Barrier>& barrier = barriers_[{ranks, channel}];
  if (!barrier) barrier = std::make_shared<Barrier>(ranks, abort_, patience_);
  return barrier;
}

void run_ranks(int size, AbortSignal& abort, const std::function<void(World&)>& rank_main,
               std::chrono::milliseconds patience) {
  ThreadRanks ranks(size, abort, patience);
  const auto run = [&](int rank) {
    try {
      rank_main(*ranks.world(rank));
    } catch (const Aborted&) {  // NOLINT(bugprone-empty-catch): who failed has said why
    } catch (const BadInput& problem) {
      abort.raise(Failure{Failure::Kind::bad_input, problem.what()});
    } catch (const std::exception& broken) {
      abort.raise(failure_of(rank, "", broken));
    }
  };
  std::vector<std::jthread> threads;
  for (int rank = 1; rank < size && !abort.raised(); ++rank) {
    try {
      threads.push_back(
          start_thread("its thread", [&run, rank] { return std::jthread(run, rank); }));
    } catch (const std::exception& broken) {
      // Those that have been started wait for it.
      abort.raise(failure_line(rank, "", broken));
    }
  }
  if (!abort.raised()) run(0);
  threads.clear();
  if (!abort.raised()) return;
  if (abort.failure().kind == Failure::Kind::bad_input) throw BadInput(abort.message());
  throw IoError(abort.message());
}

}  // namespace shardwise::exec
