#include "executor/comm/mpi_world.h"

#include <fmt/format.h>
#include <mpi.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "executor/comm/awake_clock.h"
#include "executor/comm/sockets/process_group.h"
#include "planner/files/trusted_file.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

using Clock = AwakeClock;

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw IoError(
      fmt::format("{}: {}", what, std::string_view(text.data(), static_cast<std::size_t>(length))));
}

/// MPI counts in ints: longer messages go in parts.
constexpr std::size_t kPart = std::size_t{1} << 30;
constexpr std::chrono::microseconds kAtOnce{200};

class MpiPeers : public ProcessPeers {
 public:
  MpiPeers(MPI_Comm comm, const std::vector<std::int64_t>& ranks, const Patience& patience)
      : ProcessPeers(ranks, patience), comm_(comm) {}

  void transfer(const char* what, const Transfers& transfers) override {
    requests_.clear();
    others_.clear();
    for (std::size_t r = 0; r < transfers.received.size(); ++r) {
      for_parts(transfers.received[r], [&](std::byte* at, int bytes, MPI_Request* request) {
        check(MPI_Irecv(at, bytes, MPI_BYTE, static_cast<int>(r), 0, comm_, request), what);
        others_.push_back(r);
      });
    }
    for (std::size_t r = 0; r < transfers.sent.size(); ++r) {
      for_parts(transfers.sent[r], [&](const std::byte* at, int bytes, MPI_Request* request) {
        check(MPI_Isend(at, bytes, MPI_BYTE, static_cast<int>(r), 0, comm_, request), what);
        others_.push_back(r);
      });
    }
    finish(what);
  }

 private:
  template <class Byte, class Start>
  void for_parts(std::span<Byte> bytes, const Start& start) {
    for (std::size_t at = 0; at < bytes.size(); at += kPart) {
      requests_.push_back(MPI_REQUEST_NULL);
      start(bytes.data() + at, static_cast<int>(std::min(kPart, bytes.size() - at)),
            &requests_.back());
    }
  }

  /// Polls until all requests are over: at first at once, then leaving the core to kernels. On a
  /// busy machine one poll may take long.
  void finish(const char* what) {
    const Clock::time_point begin = Clock::now();
    for (;;) {
      int done = 0;
      check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                        MPI_STATUSES_IGNORE),
            what);
      if (done != 0) return;
      patience().abort->check();
      const std::chrono::duration<double> waited = Clock::now() - begin;
      if (waited.count() > patience().seconds) give_up(what, missing(what));
      if (waited < kAtOnce) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  }

  /// The ranks whose requests are not over.
  std::vector<std::size_t> missing(const char* what) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      int done = 0;
      check(MPI_Request_get_status(requests_[i], &done, MPI_STATUS_IGNORE), what);
      if (done == 0) found.push_back(others_[i]);
    }
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
  std::vector<std::size_t> others_;  // the rank of each
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
  CommunicatorTraits traits() const override { return kAllTraits; }

  std::unique_ptr<ControlGroup> control_group(const std::vector<std::int64_t>& ranks,
                                              Control control) override {
    return std::make_unique<ProcessControlGroup>(peers(ranks, control));
  }
  std::unique_ptr<Communicator> communicator(const std::vector<std::int64_t>& ranks,
                                             Stream stream) override {
    return std::make_unique<ProcessCommunicator>(peers(ranks, stream));
  }

 private:
  std::unique_ptr<MpiPeers> peers(const std::vector<std::int64_t>& ranks, Channel channel) {
    const auto [at, fresh] = comms_.try_emplace({ranks, channel}, MPI_COMM_NULL);
    if (fresh) at->second = make(ranks, channel);
    return std::make_unique<MpiPeers>(at->second, ranks, patience_);
  }
  static MPI_Comm make(const std::vector<std::int64_t>& ranks, Channel channel) {
    std::vector<int> members;
    for (const std::int64_t rank : ranks) members.push_back(static_cast<int>(rank));
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    check(MPI_Comm_group(MPI_COMM_WORLD, &all), "group");
    check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some), "group");
    check(MPI_Comm_create_group(MPI_COMM_WORLD, some, channel.number(), &made), "group");
    check(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN), "group");
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return made;
  }

  int rank_;
  int size_;
  Patience patience_;
  std::map<std::pair<std::vector<std::int64_t>, Channel>, MPI_Comm> comms_;
};

/// Open MPI and PMIx load every library below HOME that is named as a component of theirs, and read
/// settings there. Where HOME may be another user's, as after sudo -E, or is relative, this user's
/// own takes its place. Source: Open MPI 4.1, opal/mca/base/mca_base_open.c.
void use_own_home() {
  const char* const home = std::getenv("HOME");
  if (home == nullptr) return;
  const bool own =
      home[0] == '/' && may_keep(home, ".openmpi/components") && may_keep(home, ".pmix/components");
  if (own) return;
  const passwd* const user = ::getpwuid(::geteuid());
  const bool known = user != nullptr && user->pw_dir[0] == '/';
  ::setenv("HOME", known ? user->pw_dir : "/dev/null", 1);  // nothing is below a device
}

/// Ends this process where MPI has not joined all of them in time, as one of them is stopped: MPI
/// itself waits for ever, and a launcher ends the others where one ends. The lowest rank is first.
class JoinLimit {
 public:
  JoinLimit(double patience_s, int rank)
      : thread_([this, patience_s, rank] {
          const Clock::time_point begin = Clock::now();
          const std::chrono::duration<double> most(patience_s + 2.0 * std::min(rank, 5));
          std::unique_lock<std::mutex> lock(mutex_);
          while (!joined_) {
            if (Clock::now() - begin > most) {
              fmt::print(stderr,
                         "shardwise-run: rank {} waited {} s in MPI_Init for the other ranks\n",
                         rank, patience_s);
              std::_Exit(3);  // as where any other rank does not come
            }
            over_.wait_for(lock, std::chrono::milliseconds(100));
          }
        }) {}
  ~JoinLimit() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      joined_ = true;
    }
    over_.notify_one();
    thread_.join();
  }
  JoinLimit(const JoinLimit&) = delete;
  JoinLimit& operator=(const JoinLimit&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool joined_ = false;
  std::thread thread_;
};

}  // namespace

MpiJob::MpiJob(double patience_s, int rank) {
  use_own_home();
  int provided = MPI_THREAD_SINGLE;
  {
    const JoinLimit limit(patience_s, rank);
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  }
  if (provided != MPI_THREAD_MULTIPLE) {
    throw IoError("the MPI library was built without MPI_THREAD_MULTIPLE, which streams need");
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  const std::vector<Member> machines = members();
  const bool one_machine = std::ranges::all_of(
      machines, [&](const Member& each) { return each.same_machine(machines.front()); });
  if (!one_machine) hub_.listen_on(own_addresses());
  // What no other program knows, by way of the launcher that its processes have in common.
  Digest key = draw_digest();
  check(MPI_Bcast(key.data(), static_cast<int>(key.size()), MPI_BYTE, 0, MPI_COMM_WORLD), "key");
  hub_.know(rank_, one_machine ? machines : members(), key);
}

std::vector<Member> MpiJob::members() const {
  std::vector<Member> members(static_cast<std::size_t>(size_));
  check(MPI_Allgather(&hub_.own(), kMemberBytes, MPI_BYTE, members.data(), kMemberBytes, MPI_BYTE,
                      MPI_COMM_WORLD),
        "members");
  return members;
}

MpiJob::~MpiJob() { MPI_Finalize(); }

std::unique_ptr<World> MpiJob::world(AbortSignal& abort, double patience_s) {
  return std::make_unique<MpiWorld>(rank_, size_, Patience{&abort, patience_s, rank_});
}

void MpiJob::end(int exit_code) {
  // A launcher that does not answer shall not keep the process.
  try {
    std::thread([exit_code] {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      std::_Exit(exit_code);
    }).detach();
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): then it may
  }
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();
}

}  // namespace shardwise::exec
