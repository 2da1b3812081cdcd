#include "executor/comm/thread_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <thread>

#include "planner/spec/check.h"
#include "planner/spec/error.h"

namespace shardwise::exec {

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
  const bool in_time = all_here_.wait_for(lock, patience_, met);
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
  abort_.raise_hung(fmt::format(
      "rank {} waited {} s in {} for rank {}", ranks_[static_cast<std::size_t>(member)],
      std::chrono::duration<double>(patience_).count(), what, fmt::join(missing, ", ")));
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

  void all_gather(std::span<const float> mine, std::span<float> all, std::int64_t shard) override {
    show(mine.data(), "all_gather");
    for (int r = 0; r < size(); ++r) {
      const Piece piece = piece_of(std::ssize(all), shard, r);
      copy(all.data() + piece.begin, shown(r), piece.count * sizeof(float));
    }
    meeting_->meet(member_, "all_gather");
  }

  void reduce_scatter(std::span<const float> all, std::span<float> mine, std::int64_t shard,
                      bool add) override {
    show(all.data(), "reduce_scatter");
    fold(piece_of(std::ssize(all), shard, member_), mine, add);
    meeting_->meet(member_, "reduce_scatter");
  }

  void all_reduce(std::span<float> values) override {
    const std::int64_t shard = (std::ssize(values) + size() - 1) / size();
    show(values.data(), "all_reduce");
    // Nobody but this rank reads or writes its piece of any buffer until all have met.
    const Piece own = piece_of(std::ssize(values), shard, member_);
    fold(own, values.subspan(own.begin, own.count), false);
    meeting_->meet(member_, "all_reduce");
    for (int r = 0; r < size(); ++r) {
      const Piece piece = piece_of(std::ssize(values), shard, r);
      copy(values.data() + piece.begin, floats(r) + piece.begin, piece.count * sizeof(float));
    }
    meeting_->meet(member_, "all_reduce");
  }

  void broadcast(std::span<std::byte> values, int root) override {
    show(values.data(), "broadcast");
    copy(values.data(), shown(root), values.size());
    meeting_->meet(member_, "broadcast");
  }

  void all_to_all(std::span<const std::byte> send, std::span<std::byte> receive) override {
    show(send.data(), "all_to_all");
    const std::size_t piece = receive.size() / static_cast<std::size_t>(size());
    for (int r = 0; r < size(); ++r) {
      copy(receive.data() + piece * static_cast<std::size_t>(r),
           shown(r) + piece * static_cast<std::size_t>(member_), piece);
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
  const float* floats(int rank) const { return reinterpret_cast<const float*>(shown(rank)); }

  static void copy(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
  }

  /// The sum over the ranks of a piece of their buffers, in blocks that stay in the cache.
  void fold(const Piece& piece, std::span<float> sum, bool add) const {
    constexpr std::size_t kBlock = 4096;
    for (std::size_t at = 0; at < piece.count; at += kBlock) {
      const std::size_t n = std::min(kBlock, piece.count - at);
      std::array<float, kBlock> total;  // NOLINT(*member-init*): its first n are copied into
      const float* const first = add ? sum.data() + at : floats(0) + piece.begin + at;
      copy(total.data(), first, n * sizeof(float));
      for (int r = add ? 0 : 1; r < size(); ++r) {
        add_to({total.data(), n}, {floats(r) + piece.begin + at, n});
      }
      copy(sum.data() + at, total.data(), n * sizeof(float));
    }
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
  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks, int number) override {
    const auto self = std::ranges::find(ranks, std::int64_t{rank_});
    SHARDWISE_CHECK(self != ranks.end(), "a rank joins groups that it is part of");
    return std::make_unique<ThreadGroup>(ranks_.meeting(ranks, number),
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

std::shared_ptr<Meeting> ThreadRanks::meeting(const std::vector<std::int64_t>& ranks, int number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Meeting>& meeting = meetings_[{ranks, number}];
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
    } catch (const std::exception& broken) {
      abort.raise(fmt::format("rank {}: {}", rank, broken.what()));
    }
  };
  std::vector<std::jthread> threads;
  for (int rank = 1; rank < size; ++rank) threads.emplace_back(run, rank);
  run(0);
  threads.clear();
  if (abort.raised()) throw IoError(abort.message());
}

}  // namespace shardwise::exec
