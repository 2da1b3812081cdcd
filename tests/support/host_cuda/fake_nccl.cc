// Communicators of the fake: how they begin and end.
#include "tests/support/host_cuda/fake_nccl.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include "tests/support/host_cuda/fake_calls.h"
#include "tests/support/host_cuda/fake_nccl_folder.h"
#include "tests/support/host_cuda/fake_nccl_state.h"

namespace fake_nccl {
namespace {

/// What the ranks of a communicator say when they split it for the n-th time.
struct Split {
  struct Part {
    int color = 0;
    int key = 0;
    ncclComm** made = nullptr;  // where the rank expects it; none once it has it
    std::string name;
  };
  std::map<int, Part> parts;  // by rank of the parent
};

int version = NCCL_VERSION_CODE;
std::uint64_t ids = 0;
std::map<std::string, std::shared_ptr<Clique>> by_id;
std::map<std::pair<Clique*, int>, Split> splits;
std::set<ncclComm*> open;
std::vector<std::shared_ptr<Clique>> cliques;
std::set<std::string> endless;
std::minstd_rand random_polls;

/// Longer than ranks need to give up their graphs.
constexpr std::chrono::seconds kLongest{10};

std::shared_ptr<Clique> new_clique(const std::string& name, int size) {
  auto clique = std::make_shared<Clique>();
  clique->name = name;
  clique->size = size;
  clique->next.resize(static_cast<std::size_t>(size));
  cliques.push_back(clique);
  return clique;
}

std::string name_in(const ncclConfig_t* config) {
  return config != nullptr && config->commName != nullptr ? config->commName : "a communicator";
}

/// A communicator that its rank finds where it expects it.
void hand_over(Split::Part& part, ncclComm* made) {
  open.insert(made);
  std::atomic_ref<ncclComm*>(*std::exchange(part.made, nullptr)).store(made);
}

void finish_split(Split& split, const std::string& key) {
  std::map<int, std::vector<Split::Part*>> colors;
  for (auto& [rank, part] : split.parts) colors[part.color].push_back(&part);
  for (auto& [color, parts] : colors) {
    if (color == NCCL_SPLIT_NOCOLOR) continue;
    std::ranges::stable_sort(parts, {}, &Split::Part::key);
    const auto clique = new_clique(parts.front()->name, static_cast<int>(parts.size()));
    clique->joined = clique->size;
    clique->key = key + "." + std::to_string(color);
    for (std::size_t r = 0; r < parts.size(); ++r) {
      if (parts[r]->made == nullptr) continue;  // aborted since
      hand_over(*parts[r], new ncclComm{clique, static_cast<int>(r)});
    }
  }
}

/// Takes a communicator away. A split of it that is not over gives its rank one of no ranks.
void end_communicator(ncclComm* comm) {
  for (auto& [of, split] : splits) {
    const auto part = split.parts.find(comm->rank);
    if (of.first != comm->clique.get() || part == split.parts.end()) continue;
    if (part->second.made != nullptr) hand_over(part->second, new ncclComm{});
  }
  open.erase(comm);
  delete comm;
}

/// Lets streams of the rank go that wait in its communicator. Those of other ranks wait until they
/// abort theirs.
void break_all(ncclComm& comm) {
  Clique& clique = *comm.clique;
  *comm.aborted = true;
  ++clique.aborted;
  for (auto& [number, operation] : clique.collectives) operation->gone = true;
  for (auto& [key, operation] : clique.messages) operation->gone = true;
  // Threads that wait for streams look again when something is issued.
  fake_cuda::Streams& streams = fake_cuda::Streams::all();
  if (streams.open_streams.empty()) return;
  streams.put(streams.open_streams.front(),
              {{"ncclCommAbort", {}, {}, {}}, nullptr, nullptr, host_cuda::new_edge()});
}

std::string key_of_split(const ncclComm& comm) {
  return comm.clique->key + ".split" + std::to_string(comm.splits - 1);
}

/// What ranks in other processes have said since.
void hear_others(ncclComm& comm) {
  Clique& clique = *comm.clique;
  if (clique.joined < clique.size) clique.joined = count_posted(clique.key, clique.size);
  if (comm.finalized) clique.finalized = count_posted(clique.key + ".end", clique.size);
  const auto splitting = splits.find({&clique, comm.splits - 1});
  if (splitting == splits.end() || std::ssize(splitting->second.parts) == clique.size) return;
  const std::string key = key_of_split(comm);
  if (comm.endless || count_posted(key, clique.size) < clique.size) return;
  for (int rank = 0; rank < clique.size; ++rank) {
    const std::vector<std::byte> said = posted(key, rank);
    Split::Part part;
    std::memcpy(&part.color, said.data(), sizeof part.color);
    std::memcpy(&part.key, said.data() + sizeof part.color, sizeof part.key);
    splitting->second.parts.try_emplace(rank, part);
  }
  finish_split(splitting->second, key);
}

/// Asks for a call that is in progress. Who only watches does not move it on.
ncclResult_t ask(ncclComm& comm) {
  if (comm.later->by != std::this_thread::get_id() || --comm.later->asked > 0) {
    return ncclInProgress;
  }
  return std::exchange(comm.later, std::nullopt)->issue();
}

ncclResult_t communicator_state(ncclComm& comm) {
  if (!comm.clique) return ncclInProgress;
  if (are_processes()) hear_others(comm);
  const Clique& clique = *comm.clique;
  if (clique.error != ncclSuccess) return clique.error;
  if (comm.endless) return ncclInProgress;
  if (comm.later) return ask(comm);
  if (clique.joined < clique.size) return ncclInProgress;
  const auto splitting = splits.find({comm.clique.get(), comm.splits - 1});
  if (splitting != splits.end() && std::ssize(splitting->second.parts) < clique.size) {
    return ncclInProgress;
  }
  if (!comm.finalized || clique.finalized == clique.size) return ncclSuccess;
  return clique.aborted > 0 ? ncclRemoteError : ncclInProgress;
}

}  // namespace

void Quiet::wait_for_graphs(const ncclComm& comm) {
  const auto begin = std::chrono::steady_clock::now();
  while (comm.graphs.use_count() > 1) {
    if (std::chrono::steady_clock::now() - begin > kLongest) {
      fake_cuda::complain("the end of a communicator waits for a graph that nobody destroys");
      return;
    }
    fake_cuda::Streams::all().run_all();
    lock_.unlock();
    std::this_thread::yield();
    lock_.lock();
  }
}

int draw(int below) { return static_cast<int>(random_polls() % static_cast<unsigned>(below)); }

void reset(int says) {
  version = says;
  endless.clear();
  set_symmetric(true);
  random_polls.seed(1);
  by_id.clear();
  splits.clear();
  for (ncclComm* const comm : open) delete comm;
  open.clear();
  cliques.clear();
}

int left_over() { return static_cast<int>(open.size()); }

std::vector<std::string> communicators() {
  std::vector<std::string> names;
  for (const auto& clique : cliques) names.push_back(clique->name);
  return names;
}

void break_later(const std::string& name, ncclResult_t error) {
  const Quiet call("break_later");
  for (const auto& clique : cliques) {
    if (clique->name.starts_with(name)) clique->error = error;
  }
}

void never_end(const std::string& call) { endless.insert(call); }

namespace {

/// A message that one end has issued and the other has not.
std::string text_of_half(const Clique& clique, const std::tuple<int, int, std::int64_t>& key,
                         const Operation& message) {
  const auto& [from, to, number] = key;
  const std::string what =
      text_of(message.shape) + " as number " + std::to_string(number) + " of " + clique.name;
  const std::string sender = "rank " + std::to_string(from);
  const std::string receiver = "rank " + std::to_string(to);
  if (message.issued[0]) {
    return sender + " sent " + receiver + " a " + what + ", which it does not receive";
  }
  return receiver + " receives from " + sender + " a " + what + ", which it does not send";
}

}  // namespace

std::vector<std::string> unfinished() {
  std::vector<std::string> lines;
  if (are_processes()) return lines;  // of which each knows its own
  for (const auto& clique : cliques) {
    for (const auto& [number, operation] : clique->collectives) {
      std::string missing;
      for (int r = 0; r < clique->size; ++r) {
        if (!operation->issued[static_cast<std::size_t>(r)]) missing += " " + std::to_string(r);
      }
      if (missing.empty()) continue;
      lines.push_back("rank " + std::to_string(operation->first) + " issued " +
                      text_of(operation->shape) + " as number " + std::to_string(number) + " of " +
                      clique->name + ", not issued by rank" + missing);
    }
    for (const auto& [key, message] : clique->messages) {
      if (message->issued[0] && message->issued[1]) continue;
      lines.push_back(text_of_half(*clique, key, *message));
    }
  }
  return lines;
}

}  // namespace fake_nccl

using fake_nccl::Quiet;

ncclResult_t ncclGetVersion(int* version) {
  const Quiet call("ncclGetVersion");
  *version = fake_nccl::version;
  return call.error();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Quiet call("ncclGetUniqueId");
  std::memset(id, 0, sizeof *id);
  const std::uint64_t number = ++fake_nccl::ids;
  std::memcpy(id->internal, &number, sizeof number);
  return call.error();
}

const char* ncclGetErrorString(ncclResult_t result) {
  constexpr std::array kTexts = {"no error",
                                 "unhandled cuda error",
                                 "unhandled system error",
                                 "internal error",
                                 "invalid argument",
                                 "invalid usage",
                                 "remote process exited",
                                 "NCCL operation in progress"};
  return kTexts[static_cast<std::size_t>(result) % kTexts.size()];
}

const char* ncclGetLastError(ncclComm_t /*comm*/) { return ""; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const Quiet call("ncclCommInitRankConfig");
  if (call.error() != ncclSuccess) return call.error();
  if (config == nullptr || config->blocking != 0) {
    fake_cuda::complain("ncclCommInitRankConfig makes a blocking communicator");
    return ncclInvalidUsage;
  }
  auto& clique = fake_nccl::by_id[std::string(id.internal, sizeof id.internal)];
  if (!clique) clique = fake_nccl::new_clique(fake_nccl::name_in(config), ranks);
  ++clique->joined;
  if (fake_nccl::are_processes()) {
    clique->key = "all";
    clique->joined = 0;
    fake_nccl::post(fake_nccl::own_name(clique->key, rank), {});
  }
  *comm = *fake_nccl::open.insert(new ncclComm{clique, rank}).first;
  (*comm)->endless = fake_nccl::endless.contains("ncclCommInitRankConfig");
  return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                           ncclConfig_t* config) {
  const Quiet call("ncclCommSplit");
  if (call.error() != ncclSuccess) return call.error();
  fake_nccl::Split& split = fake_nccl::splits[{comm->clique.get(), comm->splits++}];
  *made = nullptr;  // until all ranks have come
  split.parts[comm->rank] = {color, key, made, fake_nccl::name_in(config)};
  comm->endless = fake_nccl::endless.contains("ncclCommSplit");
  const std::string name = fake_nccl::key_of_split(*comm);
  if (std::ssize(split.parts) == comm->clique->size && !comm->endless) {
    fake_nccl::finish_split(split, name);
  } else if (fake_nccl::are_processes()) {
    const std::array<int, 2> said = {color, key};
    fake_nccl::post(fake_nccl::own_name(name, comm->rank), std::as_bytes(std::span(said)));
  }
  return ncclSuccess;  // as NCCL 2.28 does: only the parent's state says that it is in progress
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const Quiet call("ncclCommGetAsyncError");
  if (call.error() == ncclSuccess) *state = fake_nccl::communicator_state(*comm);
  return call.error();
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Quiet call("ncclCommFinalize");
  if (call.error() != ncclSuccess) return call.error();
  comm->finalized = true;
  ++comm->clique->finalized;
  if (fake_nccl::are_processes()) {
    fake_nccl::post(fake_nccl::own_name(comm->clique->key + ".end", comm->rank), {});
  }
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Quiet call("ncclCommDestroy");
  call.wait_for_graphs(*comm);
  fake_nccl::end_communicator(comm);
  return call.error();
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Quiet call("ncclCommAbort");
  if (comm->clique) fake_nccl::break_all(*comm);
  if (fake_nccl::put_off(comm)) return call.error();
  call.wait_for_graphs(*comm);
  fake_nccl::end_communicator(comm);
  return call.error();
}

namespace fake_nccl {

void finish_aborts(const std::vector<ncclComm*>& comms) {
  Quiet call("finish_aborts");
  for (ncclComm* const comm : comms) {
    call.wait_for_graphs(*comm);
    end_communicator(comm);
  }
}

}  // namespace fake_nccl
