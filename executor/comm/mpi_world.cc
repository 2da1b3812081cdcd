#include "executor/comm/mpi_world.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "planner/spec/check.h"
#include "planner/spec/error.h"

namespace shardwise::exec {
namespace {

using Clock = std::chrono::steady_clock;

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw IoError(
      fmt::format("{}: {}", what, std::string_view(text.data(), static_cast<std::size_t>(length))));
}

/// What every group of a process needs to wait.
struct Patience {
  AbortSignal* abort = nullptr;
  double seconds = 0;
  int rank = 0;
};

/// Starts a call and polls until it is over: at first at once, then leaving the core to kernels.
void finish(const char* what, const Patience& patience,
            const std::function<int(MPI_Request*)>& start) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(start(&request), what);
  const Clock::time_point begin = Clock::now();
  for (std::int64_t polls = 0;; ++polls) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
    if (done != 0) return;  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker): MPI_Test ended it
    patience.abort->check();
    if (polls < 200) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (std::chrono::duration<double>(Clock::now() - begin).count() > patience.seconds) {
      patience.abort->raise_hung(fmt::format("rank {} waited {} s in {} for another rank",
                                             patience.rank, patience.seconds, what));
      throw Aborted("another rank did not come");
    }
  }
}

int as_int(std::int64_t count) {
  SHARDWISE_CHECK(count <= INT32_MAX, fmt::format("{} elements in one call", count));
  return static_cast<int>(count);
}

class MpiGroup : public Communicator {
 public:
  MpiGroup(MPI_Comm comm, const Patience& patience) : comm_(comm), patience_(patience) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_gather(const ConstNumbers& mine, const Numbers& all, std::int64_t shard) override {
    const Piece own = piece_of(all, shard, rank_);
    copy_numbers(all.part(own.begin, own.count), mine.part(0, own.count));
    std::vector<int> counts;
    std::vector<int> places;
    for (int r = 0; r < size_; ++r) {
      const Piece piece = piece_of(all, shard, r);
      counts.push_back(as_int(static_cast<std::int64_t>(piece.count)));
      places.push_back(as_int(static_cast<std::int64_t>(piece.begin)));
    }
    const MPI_Datatype type = type_of(all);
    finish("all_gather", patience_, [&](MPI_Request* request) {
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, type, all.data, counts.data(), places.data(), type,
                             comm_, request);
    });
  }

  void reduce_scatter(const ConstNumbers& all, const Numbers& mine, std::int64_t shard,
                      bool add) override {
    for (std::int64_t at = 0; at < shard; at += kBlock) fold_block(all, mine, shard, at, add);
  }

  void all_reduce(const Numbers& values) override {
    const std::int64_t shard = (static_cast<std::int64_t>(values.count) + size_ - 1) / size_;
    const Piece own = piece_of(values, shard, rank_);
    const Numbers mine = values.part(own.begin, own.count);
    reduce_scatter(values, mine, shard, false);
    all_gather(mine, values, shard);
  }

  void broadcast(std::span<std::byte> values, int root) override {
    finish("broadcast", patience_, [&](MPI_Request* request) {
      return MPI_Ibcast(values.data(), as_int(std::ssize(values)), MPI_BYTE, root, comm_, request);
    });
  }

  void all_to_all(const ConstNumbers& all, const Numbers& received, std::int64_t shard) override {
    std::vector<int> sent;
    std::vector<int> sent_from;
    std::vector<int> got_at;
    for (int r = 0; r < size_; ++r) {
      const Piece piece = piece_of(all, shard, r);
      sent.push_back(as_int(static_cast<std::int64_t>(piece.count)));
      sent_from.push_back(as_int(static_cast<std::int64_t>(piece.begin)));
      got_at.push_back(as_int(shard * r));
    }
    const std::vector<int> got(sent.size(), sent[static_cast<std::size_t>(rank_)]);
    const MPI_Datatype type = type_of(all);
    finish("all_to_all", patience_, [&](MPI_Request* request) {
      return MPI_Ialltoallv(all.data, sent.data(), sent_from.data(), type, received.data,
                            got.data(), got_at.data(), type, comm_, request);
    });
  }

  void exchange(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const int bytes = as_int(std::ssize(mine));
    finish("exchange", patience_, [&](MPI_Request* request) {
      return MPI_Iallgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, comm_,
                            request);
    });
  }

  void send(std::span<const std::byte> message, int to) override {
    finish("send", patience_, [&](MPI_Request* request) {
      return MPI_Isend(message.data(), as_int(std::ssize(message)), MPI_BYTE, to, 0, comm_,
                       request);
    });
  }

  void receive(std::span<std::byte> message, int from) override {
    finish("receive", patience_, [&](MPI_Request* request) {
      return MPI_Irecv(message.data(), as_int(std::ssize(message)), MPI_BYTE, from, 0, comm_,
                       request);
    });
  }

 private:
  static constexpr std::int64_t kBlock = 1 << 18;  // elements of a piece at a time

  static Piece piece_of(const ConstNumbers& all, std::int64_t shard, int rank) {
    return exec::piece_of(static_cast<std::int64_t>(all.count), shard, rank);
  }
  /// Of numbers on their way: MPI knows no bf16, and adds nothing here.
  static MPI_Datatype type_of(const ConstNumbers& numbers) {
    return numbers.dtype == DType::fp32 ? MPI_FLOAT : MPI_UINT16_T;
  }

  /// Elements [at, at + kBlock) of every piece go to its rank, which adds what it gets in order.
  void fold_block(const ConstNumbers& all, const Numbers& mine, std::int64_t shard, std::int64_t at,
                  bool add) {
    const auto in_block = [&](const Piece& piece) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(piece.count) - at, 0, kBlock);
    };
    const std::int64_t own = in_block(piece_of(all, shard, rank_));
    std::vector<int> sent;
    std::vector<int> sent_from;
    for (int r = 0; r < size_; ++r) {
      const Piece piece = piece_of(all, shard, r);
      sent.push_back(as_int(in_block(piece)));
      sent_from.push_back(
          as_int(static_cast<std::int64_t>(piece.begin) + (sent.back() > 0 ? at : 0)));
    }
    const std::vector<int> got(static_cast<std::size_t>(size_), as_int(own));
    std::vector<int> got_at;
    for (int r = 0; r < size_; ++r) got_at.push_back(as_int(own * r));
    const auto count = static_cast<std::size_t>(own);
    received_.resize(count * all.each() * static_cast<std::size_t>(size_));
    const MPI_Datatype type = type_of(all);
    finish("reduce_scatter", patience_, [&](MPI_Request* request) {
      return MPI_Ialltoallv(all.data, sent.data(), sent_from.data(), type, received_.data(),
                            got.data(), got_at.data(), type, comm_, request);
    });
    if (own == 0) return;
    const auto from = [&](int r) {
      return ConstNumbers(received_.data() + count * all.each() * static_cast<std::size_t>(r),
                          count, all.dtype);
    };
    fold(size_, from, mine.part(static_cast<std::size_t>(at), count), add);
  }

  MPI_Comm comm_;
  Patience patience_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<std::byte> received_;
};

class MpiWorld : public World {
 public:
  MpiWorld(int rank, int size, const Patience& patience)
      : rank_(rank), size_(size), patience_(patience) {}
  ~MpiWorld() override {
    for (auto& made : comms_) MPI_Comm_free(&made.second);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks, int number) override {
    const auto [at, fresh] = comms_.try_emplace({ranks, number}, MPI_COMM_NULL);
    if (fresh) at->second = make(ranks, number);
    return std::make_unique<MpiGroup>(at->second, patience_);
  }

 private:
  static MPI_Comm make(const std::vector<std::int64_t>& ranks, int number) {
    std::vector<int> members;
    for (const std::int64_t rank : ranks) members.push_back(static_cast<int>(rank));
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    check(MPI_Comm_group(MPI_COMM_WORLD, &all), "group");
    check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some), "group");
    check(MPI_Comm_create_group(MPI_COMM_WORLD, some, number, &made), "group");
    check(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN), "group");
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return made;
  }

  int rank_;
  int size_;
  Patience patience_;
  std::map<std::pair<std::vector<std::int64_t>, int>, MPI_Comm> comms_;
};

}  // namespace

MpiJob::MpiJob() {
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  if (provided != MPI_THREAD_MULTIPLE) {
    throw IoError("the MPI library was built without MPI_THREAD_MULTIPLE, which streams need");
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

MpiJob::~MpiJob() { MPI_Finalize(); }

std::unique_ptr<World> MpiJob::world(AbortSignal& abort, double patience_s) {
  return std::make_unique<MpiWorld>(rank_, size_, Patience{&abort, patience_s, rank_});
}

void MpiJob::end_all(int exit_code) {
  // A launcher that does not answer shall not keep the process.
  std::thread([exit_code] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    std::_Exit(exit_code);
  }).detach();
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();
}

}  // namespace shardwise::exec
