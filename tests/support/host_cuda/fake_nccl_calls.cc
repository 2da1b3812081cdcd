// Collectives and messages of the fake. Each is three pieces of work of a stream: it arrives; once
// all have, it reads what the others sent; once all have read, it writes what it received.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "executor/kernels/element.h"
#include "tests/support/host_cuda/fake_calls.h"
#include "tests/support/host_cuda/fake_nccl_folder.h"
#include "tests/support/host_cuda/fake_nccl_state.h"

namespace fake_nccl {
namespace {

using fake_cuda::Work;
using shardwise::exec::Bf16;
using Bytes = std::vector<std::byte>;

/// What one rank takes from an operation and where it puts it.
struct Taken {
  std::shared_ptr<Operation> operation;
  std::shared_ptr<bool> aborted;                            // its communicator: it waits no longer
  std::function<void(const Operation&, Bytes&)> take = {};  // none: it only sends
  void* to = nullptr;
};

bool waits_no_longer(const Taken& each) { return each.operation->broken || *each.aborted; }
bool all_arrived(const Taken& each) {
  return waits_no_longer(each) || each.operation->arrived == std::ssize(each.operation->ranks);
}
bool all_read(const Taken& each) {
  return waits_no_longer(each) || each.operation->read == std::ssize(each.operation->ranks);
}

void count(int& number) {
  const fake_cuda::Unwatched unwatched;
  ++number;
}
bool is_broken(const Operation& operation) {
  const fake_cuda::Unwatched unwatched;
  return operation.broken || operation.gone;
}

/// The work of one issue: all of its operations at once, so none waits for another.
std::vector<Work> works_of(const std::string& name, std::vector<Taken> all) {
  const auto taken = std::make_shared<std::vector<Taken>>(std::move(all));
  const auto received = std::make_shared<std::vector<Bytes>>(taken->size());
  const auto arrive = [taken] {
    for (const Taken& each : *taken) {
      host_cuda::release(each.operation->begun);
      count(each.operation->arrived);
    }
  };
  const auto read = [taken, received] {
    for (std::size_t i = 0; i < taken->size(); ++i) {
      const Taken& each = (*taken)[i];
      host_cuda::acquire(each.operation->begun);
      if (each.take && !is_broken(*each.operation)) each.take(*each.operation, (*received)[i]);
      host_cuda::release(each.operation->over);
      count(each.operation->read);
    }
  };
  const auto write = [taken, received] {
    for (std::size_t i = 0; i < taken->size(); ++i) {
      host_cuda::acquire((*taken)[i].operation->over);
      const Bytes& bytes = (*received)[i];
      if (!bytes.empty()) std::memcpy((*taken)[i].to, bytes.data(), bytes.size());
    }
  };
  const auto when = [taken](bool (*ready)(const Taken&)) {
    return [taken, ready] { return std::ranges::all_of(*taken, ready); };
  };
  return {{name, {}, {}, arrive},
          {name, when(all_arrived), "other ranks", read},
          {name, when(all_read), "other ranks", write}};
}

float to_float(const void* at, std::size_t i, ncclDataType_t type) {
  return type == ncclBfloat16 ? shardwise::exec::to_float(static_cast<const Bf16*>(at)[i])
                              : static_cast<const float*>(at)[i];
}

/// Elements [begin, begin + count) of the sum, which begins behind `owner` and rounds each
/// addition.
void sum(const Operation& operation, int owner, std::size_t begin, std::size_t count, Bytes& to) {
  const ncclDataType_t type = operation.shape.type;
  const std::size_t at = to.size();
  to.resize(at + count * bytes_of(type));
  const auto ranks = static_cast<int>(operation.sent.size());
  for (std::size_t i = 0; i < count; ++i) {
    float total = 0;
    for (int step = 1; step <= ranks; ++step) {
      const auto r = static_cast<std::size_t>((owner + step) % ranks);
      const float each = to_float(operation.sent[r], begin + i, type);
      total = step == 1 ? each : total + each;
      if (type == ncclBfloat16) {
        total = shardwise::exec::to_float(shardwise::exec::from_float<Bf16>(total));
      }
    }
    if (type == ncclBfloat16) {
      const Bf16 rounded = shardwise::exec::from_float<Bf16>(total);
      std::memcpy(&to[at + i * sizeof rounded], &rounded, sizeof rounded);
    } else {
      std::memcpy(&to[at + i * sizeof total], &total, sizeof total);
    }
  }
}

using Take = std::function<void(const Operation&, Bytes&)>;

/// Issues now, or when it has been asked for: who does not wait until it is over has what it issues
/// next in front of it.
ncclResult_t issue_some_time(ncclComm_t comm, cudaStream_t stream, const std::string& what,
                             void* issued, const fake_cuda::MakeWork& make) {
  if (comm->later) fake_cuda::complain(what + " while the call before it is in progress");
  const auto issue = [=] {
    return fake_cuda::issue(stream, what, issued, make) == cudaSuccess ? ncclSuccess
                                                                       : ncclInvalidArgument;
  };
  const int asked = draw(3);
  if (asked == 0) return issue();
  comm->later = Later{asked, std::this_thread::get_id(), issue};
  return ncclInProgress;
}

/// What a graph holds of a communicator that it is captured with.
std::shared_ptr<int> held_by(cudaStream_t stream, ncclComm_t comm) {
  return stream != nullptr && stream->capture ? comm->graphs : nullptr;
}

ncclResult_t collective(const Shape& shape, ncclComm_t comm, cudaStream_t stream, const void* sent,
                        void* received, Take take) {
  const bool scatters = shape.call == "ncclReduceScatter";
  const std::size_t sent_bytes = shape.count * bytes_of(shape.type) *
                                 static_cast<std::size_t>(scatters ? comm->clique->size : 1);
  const fake_cuda::Call call(shape.call.c_str());
  if (call.error() != cudaSuccess) return static_cast<ncclResult_t>(call.error());
  const std::shared_ptr<Clique> clique = comm->clique;
  const std::shared_ptr<bool> aborted = comm->aborted;
  const auto make = [=, rank = comm->rank, hold = held_by(stream, comm)](std::int64_t) {
    const std::int64_t number = clique->next[static_cast<std::size_t>(rank)]++;
    std::shared_ptr<Operation>& operation = clique->collectives[number];
    if (!operation) {
      std::vector<int> everyone(static_cast<std::size_t>(clique->size));
      std::iota(everyone.begin(), everyone.end(), 0);
      operation = new_operation(everyone);
      operation->gone = clique->aborted > 0;  // a graph may be launched after that
    }
    const std::string name = shape.call + " " + std::to_string(number) + " of " + clique->name;
    join(*operation, name, static_cast<std::size_t>(rank), shape, sent);
    if (are_processes()) {
      return works_of_process(name, *clique, number, rank, operation, aborted, take, received,
                              sent_bytes);
    }
    return works_of(name + " on its rank " + std::to_string(rank),
                    {{operation, aborted, take, received}});
  };
  return issue_some_time(comm, stream, shape.call, call.issued(), make);
}

/// A message that a group has not issued yet.
struct Pending {
  bool sends = false;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  int peer = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};
thread_local int depth = 0;
thread_local std::vector<Pending> pending;
thread_local std::vector<ncclComm*> aborts;

Taken taken_of(const Pending& each, Clique& clique, int rank,
               const std::shared_ptr<bool>& aborted) {
  const std::pair<int, int> way =
      each.sends ? std::pair(rank, each.peer) : std::pair(each.peer, rank);
  const std::int64_t number = (each.sends ? clique.sends : clique.receives)[way]++;
  std::shared_ptr<Operation>& operation = clique.messages[{way.first, way.second, number}];
  if (!operation) {
    operation = new_operation({way.first, way.second});
    operation->gone = clique.aborted > 0;
  }
  const Shape shape = {"message", each.count, each.type};
  join(*operation, "message " + std::to_string(number) + " of " + clique.name, each.sends ? 0U : 1U,
       shape, each.from);
  if (each.sends) return {operation, aborted, {}, nullptr};
  const Take take = [](const Operation& of, Bytes& to) {
    const auto* const from = static_cast<const std::byte*>(of.sent[0]);
    to.assign(from, from + of.shape.count * bytes_of(of.shape.type));
  };
  return {operation, aborted, take, each.to};
}

ncclResult_t issue_messages(const std::vector<Pending>& messages, const char* what) {
  const fake_cuda::Call call(what);
  if (call.error() != cudaSuccess) return static_cast<ncclResult_t>(call.error());
  if (messages.empty()) return ncclSuccess;
  const Pending& first = messages.front();
  const std::shared_ptr<Clique> clique = first.comm->clique;
  const std::shared_ptr<bool> aborted = first.comm->aborted;
  const auto make = [=, rank = first.comm->rank,
                     hold = held_by(first.stream, first.comm)](std::int64_t) {
    std::vector<Taken> taken;
    for (const Pending& each : messages) taken.push_back(taken_of(each, *clique, rank, aborted));
    return works_of("messages of " + clique->name + " on its rank " + std::to_string(rank), taken);
  };
  return issue_some_time(first.comm, first.stream, what, call.issued(), make);
}

ncclResult_t message(const Pending& one, const char* what) {
  if (depth == 0) return issue_messages({one}, what);
  const fake_cuda::Call call(what);
  if (call.error() == cudaSuccess) pending.push_back(one);
  return static_cast<ncclResult_t>(call.error());
}

}  // namespace

bool put_off(ncclComm* comm) {
  if (depth > 0) aborts.push_back(comm);
  return depth > 0;
}

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return 4;
    case ncclBfloat16:
    case ncclFloat16:
      return 2;
    case ncclFloat64:
      return 8;
    default:
      return 1;
  }
}

std::string text_of(const Shape& shape) {
  return shape.call + " of " + std::to_string(shape.count) + " elements of " +
         std::to_string(bytes_of(shape.type)) + " bytes";
}

std::shared_ptr<Operation> new_operation(const std::vector<int>& ranks) {
  auto operation = std::make_shared<Operation>();
  operation->ranks = ranks;
  operation->sent.resize(ranks.size());
  operation->issued.resize(ranks.size());
  operation->begun = host_cuda::new_edge();
  operation->over = host_cuda::new_edge();
  return operation;
}

void join(Operation& operation, const std::string& name, std::size_t place, const Shape& shape,
          const void* sent) {
  const auto rank = [&](std::size_t of) { return "rank " + std::to_string(operation.ranks[of]); };
  if (operation.first < 0) {
    operation.first = static_cast<int>(place);
    operation.shape = shape;
  } else if (operation.shape != shape && !operation.broken) {
    fake_cuda::complain(name + ": " + rank(static_cast<std::size_t>(operation.first)) + " issues " +
                        text_of(operation.shape) + ", " + rank(place) + " issues " +
                        text_of(shape));
    operation.broken = true;
  }
  operation.issued[place] = true;
  if (sent != nullptr) operation.sent[place] = sent;
}

}  // namespace fake_nccl

using fake_nccl::bytes_of;
using fake_nccl::Operation;

ncclResult_t ncclAllGather(const void* sent, void* received, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return fake_nccl::collective({"ncclAllGather", count, type}, comm, stream, sent, received,
                               [=](const Operation& of, std::vector<std::byte>& to) {
                                 for (const void* const each : of.sent) {
                                   const auto* const from = static_cast<const std::byte*>(each);
                                   to.insert(to.end(), from, from + count * bytes_of(type));
                                 }
                               });
}

ncclResult_t ncclReduceScatter(const void* sent, void* received, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t operation, ncclComm_t comm,
                               cudaStream_t stream) {
  if (operation != ncclSum) return ncclInvalidArgument;
  const int rank = comm->rank;
  return fake_nccl::collective({"ncclReduceScatter", count, type}, comm, stream, sent, received,
                               [=](const Operation& of, std::vector<std::byte>& to) {
                                 fake_nccl::sum(of, rank, static_cast<std::size_t>(rank) * count,
                                                count, to);
                               });
}

ncclResult_t ncclAllReduce(const void* sent, void* received, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  if (operation != ncclSum) return ncclInvalidArgument;
  return fake_nccl::collective({"ncclAllReduce", count, type}, comm, stream, sent, received,
                               [=](const Operation& of, std::vector<std::byte>& to) {
                                 fake_nccl::sum(of, 0, 0, count, to);
                               });
}

ncclResult_t ncclSend(const void* sent, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return fake_nccl::message({true, sent, nullptr, count, type, peer, comm, stream}, "ncclSend");
}

ncclResult_t ncclRecv(void* received, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return fake_nccl::message({false, nullptr, received, count, type, peer, comm, stream},
                            "ncclRecv");
}

ncclResult_t ncclGroupStart() {
  const fake_cuda::Call call("ncclGroupStart");
  if (call.error() == cudaSuccess) ++fake_nccl::depth;
  return static_cast<ncclResult_t>(call.error());
}

ncclResult_t ncclGroupEnd() {
  if (--fake_nccl::depth > 0) return ncclSuccess;
  if (!fake_nccl::aborts.empty()) fake_nccl::finish_aborts(std::exchange(fake_nccl::aborts, {}));
  return fake_nccl::issue_messages(std::exchange(fake_nccl::pending, {}), "ncclGroupEnd");
}
