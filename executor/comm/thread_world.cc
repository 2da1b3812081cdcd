#include "executor/comm/thread_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "executor/comm/awake_clock.h"
#include "executor/comm/rank_list.h"
#include "executor/kernels/start_thread.h"
#include "executor/storage/bad_input.h"
#include "planner/spec/check.h"
#include "planner/spec/error.h"

namespace shardwise::exec {
namespace {

constexpr std::chrono::milliseconds kLook{100};

}  // namespace

Meeting::Meeting(std::vector<std::int64_t> ranks, AbortSignal& abort,
                 std::chrono::milliseconds patience)
    : shown(ranks.size()),
      ranks_(std::move(ranks)),
      abort_(abort),
      patience_(patience),
      here_(ranks_.size(), false),
      watch_(abort.on_raise([this] { wake(); })) {}

void Meeting::meet(int member, const char* what) {
  std::unique_lock<std::mutex> lock(mutex_);
  abort_.check();
  const std::uint64_t number = number_;
  here_[static_cast<std::size_t>(member)] = true;
  if (++arrived_ == ranks_.size()) {
    arrived_ = 0;
    here_.assign(here_.size(), false);
    ++number_;
    lock.unlock();
    all_here_.notify_all();
    return;
  }
  const auto met = [&] { return number_ != number || abort_.raised(); };
  const AwakeClock::time_point until = AwakeClock::now() + patience_;
  bool in_time = true;
  const std::chrono::milliseconds look = std::min(kLook, patience_);
  while (in_time && !all_here_.wait_for(lock, look, met)) in_time = AwakeClock::now() < until;
  if (number_ != number) return;
  if (!in_time) {
    lock.unlock();
    give_up(member, what);
  }
  throw Aborted("another rank failed");
}

void Meeting::give_up(int member, const char* what) {
  std::vector<std::int64_t> missing;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (!here_[i]) missing.push_back(ranks_[i]);
    }
  }
  abort_.raise_hung(
      fmt::format("rank {} waited {} s in {} for rank {}", ranks_[static_cast<std::size_t>(member)],
                  std::chrono::duration<double>(patience_).count(), what, rank_list(missing)));
}

void Meeting::wake() {
  // Whoever has looked at the signal and not begun to wait holds the mutex.
  { const std::lock_guard<std::mutex> lock(mutex_); }
  all_here_.notify_all();
}

namespace {

class ThreadGroup : public Communicator {
 public:
  ThreadGroup(std::shared_ptr<Meeting> meeting, int member)
      : meeting_(std::move(meeting)), member_(member) {}

  int rank() const override { return member_; }
  int size() const override { return static_cast<int>(meeting_->size()); }

  void all_gather(const ConstNumbers& mine, const Numbers& all, std::int64_t shard) override {
    show(mine.data, "all_gather");
    gather_pieces(all, shard, [&](int r, const Piece&) { return shown(r); });
    meeting_->meet(member_, "all_gather");
  }

  void reduce_scatter(const ConstNumbers& all, const Numbers& mine, std::int64_t shard,
                      bool add) override {
    show(all.data, "reduce_scatter");
    fold_piece(all, piece_of(all, shard, member_), mine, add);
    meeting_->meet(member_, "reduce_scatter");
  }

  void all_reduce(const Numbers& values) override {
    const std::int64_t shard =
        (static_cast<std::int64_t>(values.count) + size() - 1) / std::int64_t{size()};
    show(values.data, "all_reduce");
    // Nobody but this rank reads or writes its piece of any buffer until all have met.
    const Piece own = piece_of(values, shard, member_);
    fold_piece(values, own, values.part(own.begin, own.count), false);
    meeting_->meet(member_, "all_reduce");
    gather_pieces(values, shard, [&](int r, const Piece& piece) {
      return shown(r) + piece.begin * values.each();
    });
    meeting_->meet(member_, "all_reduce");
  }

  void broadcast(std::span<std::byte> values, int root) override {
    show(values.data(), "broadcast");
    copy(values.data(), shown(root), values.size());
    meeting_->meet(member_, "broadcast");
  }

  void all_to_all(const ConstNumbers& all, const Numbers& received, std::int64_t shard) override {
    show(all.data, "all_to_all");
    const Piece own = piece_of(all, shard, member_);
    for (int r = 0; r < size(); ++r) {
      const auto begin = static_cast<std::size_t>(shard) * static_cast<std::size_t>(r);
      copy(received.part(begin, 0).data, shown(r) + own.begin * all.each(), own.count * all.each());
    }
    meeting_->meet(member_, "all_to_all");
  }

  void exchange(std::span<const std::byte> mine, std::span<std::byte> all) override {
    show(mine.data(), "exchange");
    for (int r = 0; r < size(); ++r) {
      copy(all.data() + mine.size() * static_cast<std::size_t>(r), shown(r), mine.size());
    }
    meeting_->meet(member_, "exchange");
  }

  // A message has a meeting of two of its own, which only groups of two have here.
  void send(std::span<const std::byte> message, int to) override {
    SHARDWISE_CHECK(size() == 2 && to == 1 - member_, "messages go between the two of a pair");
    show(message.data(), "send");
    meeting_->meet(member_, "send");
  }
  void receive(std::span<std::byte> message, int from) override {
    SHARDWISE_CHECK(size() == 2 && from == 1 - member_, "messages go between the two of a pair");
    show(nullptr, "receive");
    copy(message.data(), shown(from), message.size());
    meeting_->meet(member_, "receive");
  }

 private:
  void show(const void* mine, const char* what) {
    meeting_->shown[static_cast<std::size_t>(member_)] = static_cast<const std::byte*>(mine);
    meeting_->meet(member_, what);
  }
  const std::byte* shown(int rank) const { return meeting_->shown[static_cast<std::size_t>(rank)]; }
  static Piece piece_of(const ConstNumbers& all, std::int64_t shard, int rank) {
    return exec::piece_of(static_cast<std::int64_t>(all.count), shard, rank);
  }

  static void copy(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
  }

  /// Every rank's piece in its place, from where `at` says it is.
  void gather_pieces(const Numbers& all, std::int64_t shard,
                     const std::function<const std::byte*(int, const Piece&)>& at) const {
    for (int r = 0; r < size(); ++r) {
      const Piece piece = piece_of(all, shard, r);
      copy(all.part(piece.begin, 0).data, at(r, piece), piece.count * all.each());
    }
  }

  /// The sum over the ranks of a piece of buffers like `all`.
  void fold_piece(const ConstNumbers& all, const Piece& piece, const Numbers& sum, bool add) const {
    const auto of = [&](int r) {
      return ConstNumbers(shown(r), all.count, all.dtype).part(piece.begin, piece.count);
    };
    fold(size(), of, sum, add);
  }

  std::shared_ptr<Meeting> meeting_;
  int member_;
};

}  // namespace

class ThreadWorld : public World {
 public:
  ThreadWorld(ThreadRanks& ranks, int rank) : ranks_(ranks), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return ranks_.size(); }
  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks,
                                      Channel channel) override {
    const auto self = std::ranges::find(ranks, std::int64_t{rank_});
    SHARDWISE_CHECK(self != ranks.end(), "a rank joins groups that it is part of");
    return std::make_unique<ThreadGroup>(ranks_.meeting(ranks, channel),
                                         static_cast<int>(self - ranks.begin()));
  }

 private:
  ThreadRanks& ranks_;
  int rank_;
};

ThreadRanks::ThreadRanks(int size, AbortSignal& abort, std::chrono::milliseconds patience)
    : size_(size), abort_(abort), patience_(patience) {}

std::unique_ptr<World> ThreadRanks::world(int rank) {
  return std::make_unique<ThreadWorld>(*this, rank);
}

std::shared_ptr<Meeting> ThreadRanks::meeting(const std::vector<std::int64_t>& ranks,
                                              Channel channel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Meeting>& meeting = meetings_[{ranks, channel}];
  if (!meeting) meeting = std::make_shared<Meeting>(ranks, abort_, patience_);
  return meeting;
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
      abort.raise(fmt::format("rank {}: {}", rank, reason_of(broken)));
    }
  };
  std::vector<std::jthread> threads;
  for (int rank = 1; rank < size && !abort.raised(); ++rank) {
    try {
      threads.push_back(
          start_thread("its thread", [&run, rank] { return std::jthread(run, rank); }));
    } catch (const std::exception& broken) {
      // Those that have been started wait for it.
      abort.raise(fmt::format("rank {}: {}", rank, reason_of(broken)));
    }
  }
  if (!abort.raised()) run(0);
  threads.clear();
  if (!abort.raised()) return;
  if (abort.failure().kind == Failure::Kind::bad_input) throw BadInput(abort.message());
  throw IoError(abort.message());
}

}  // namespace shardwise::exec
