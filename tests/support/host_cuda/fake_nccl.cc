// Communicators of the fake: how they begin and end.
#include "tests/support/host_cuda/fake_nccl.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "tests/support/host_cuda/fake_calls.h"
#include "tests/support/host_cuda/fake_nccl_state.h"

namespace fake_nccl {
namespace {

/// What the ranks of a communicator say when they split it for the n-th time.
struct Split {
  struct Part {
    int color = 0;
    int key = 0;
    ncclComm* made = nullptr;
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

/// A call that no sanitizer watches and nobody else makes at the same time.
class Quiet {
 public:
  explicit Quiet(const char* name)
      : lock_(fake_cuda::Streams::all().mutex),
        error_(static_cast<ncclResult_t>(fake_cuda::failure(name))) {}
  ncclResult_t error() const { return error_; }

 private:
  fake_cuda::Unwatched unwatched_;
  std::unique_lock<std::mutex> lock_;
  ncclResult_t error_;
};

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

void finish_split(const Split& split) {
  std::map<int, std::vector<const Split::Part*>> colors;
  for (const auto& [rank, part] : split.parts) colors[part.color].push_back(&part);
  for (auto& [color, parts] : colors) {
    if (color == NCCL_SPLIT_NOCOLOR) continue;
    std::ranges::stable_sort(parts, {}, &Split::Part::key);
    const auto clique = new_clique(parts.front()->name, static_cast<int>(parts.size()));
    clique->joined = clique->size;
    for (std::size_t r = 0; r < parts.size(); ++r) {
      if (parts[r]->made == nullptr) continue;  // aborted since
      parts[r]->made->clique = clique;
      parts[r]->made->rank = static_cast<int>(r);
    }
  }
}

/// Takes a communicator away, also from the split that made it and is not over.
void give_back(ncclComm* comm) {
  for (auto& [of, split] : splits) {
    for (auto& [rank, part] : split.parts) {
      if (part.made == comm) part.made = nullptr;
    }
  }
  open.erase(comm);
  delete comm;
}

/// Lets streams go that wait for a rank that has gone.
void break_all(Clique& clique) {
  ++clique.aborted;
  for (auto& [number, operation] : clique.collectives) operation->broken = true;
  for (auto& [key, operation] : clique.messages) operation->broken = true;
  // Threads that wait for streams look again when something is issued.
  fake_cuda::Streams& streams = fake_cuda::Streams::all();
  if (streams.open_streams.empty()) return;
  streams.put(streams.open_streams.front(),
              {{"ncclCommAbort", {}, {}, {}}, nullptr, nullptr, host_cuda::new_edge()});
}

ncclResult_t state_of(const ncclComm& comm) {
  if (!comm.clique) return ncclInProgress;
  const Clique& clique = *comm.clique;
  if (clique.error != ncclSuccess) return clique.error;
  if (clique.joined < clique.size) return ncclInProgress;
  const auto splitting = splits.find({comm.clique.get(), comm.splits - 1});
  if (splitting != splits.end() && std::ssize(splitting->second.parts) < clique.size) {
    return ncclInProgress;
  }
  if (!comm.finalized || clique.finalized == clique.size) return ncclSuccess;
  return clique.aborted > 0 ? ncclRemoteError : ncclInProgress;
}

}  // namespace

void reset(int says) {
  version = says;
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

std::vector<std::string> unfinished() {
  std::vector<std::string> lines;
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
  *comm = *fake_nccl::open.insert(new ncclComm{clique, rank}).first;
  return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                           ncclConfig_t* config) {
  const Quiet call("ncclCommSplit");
  if (call.error() != ncclSuccess) return call.error();
  fake_nccl::Split& split = fake_nccl::splits[{comm->clique.get(), comm->splits++}];
  *made = color == NCCL_SPLIT_NOCOLOR ? nullptr : *fake_nccl::open.insert(new ncclComm{}).first;
  split.parts[comm->rank] = {color, key, *made, fake_nccl::name_in(config)};
  if (std::ssize(split.parts) == comm->clique->size) fake_nccl::finish_split(split);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const Quiet call("ncclCommGetAsyncError");
  if (call.error() == ncclSuccess) *state = fake_nccl::state_of(*comm);
  return call.error();
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Quiet call("ncclCommFinalize");
  if (call.error() != ncclSuccess) return call.error();
  comm->finalized = true;
  ++comm->clique->finalized;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Quiet call("ncclCommDestroy");
  fake_nccl::give_back(comm);
  return call.error();
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const Quiet call("ncclCommAbort");
  if (comm->clique) fake_nccl::break_all(*comm->clique);
  fake_nccl::give_back(comm);
  return call.error();
}

ncclResult_t ncclCommRegister(ncclComm_t /*comm*/, void* buffer, std::size_t /*bytes*/,
                              void** handle) {
  const Quiet call("ncclCommRegister");
  *handle = buffer;
  return call.error();
}

ncclResult_t ncclCommDeregister(ncclComm_t /*comm*/, void* /*handle*/) {
  return Quiet("ncclCommDeregister").error();
}

ncclResult_t ncclCommWindowRegister(ncclComm_t /*comm*/, void* buffer, std::size_t /*bytes*/,
                                    ncclWindow_t* window, int flags) {
  const Quiet call("ncclCommWindowRegister");
  if (flags != NCCL_WIN_COLL_SYMMETRIC ||
      reinterpret_cast<std::uintptr_t>(buffer) % NCCL_WIN_REQUIRED_ALIGNMENT != 0) {
    return ncclInvalidArgument;
  }
  *window = static_cast<ncclWindow_t>(buffer);
  return call.error();
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t /*comm*/, ncclWindow_t /*window*/) {
  return Quiet("ncclCommWindowDeregister").error();
}
