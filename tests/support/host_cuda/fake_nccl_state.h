#pragma once

// Parts that the calls of the NCCL fake share. All behind the mutex of the CUDA fake's streams.
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/support/host_cuda/fake_calls.h"

namespace fake_nccl {

/// Shape of a collective as a rank states it: the same on all.
struct Shape {
  std::string call;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// One collective of all ranks, or one message of two.
struct Operation {
  Shape shape;
  std::vector<int> ranks;         // of the communicator: all, or sender and receiver
  int first = -1;                 // which of them issued first
  std::vector<const void*> sent;  // by rank
  std::vector<bool> issued;       // by rank
  int arrived = 0;                // streams that have come to it
  int read = 0;                   // streams that have read what the others sent
  bool broken = false;            // it was complained of: nobody waits in it
  bool gone = false;              // a rank aborted: nothing is moved
  void* begun = nullptr;          // edge: all that was sent is there
  void* over = nullptr;           // edge: all has been read
};

struct Clique {
  std::string name;
  std::string key;  // the same in all processes, and no other's
  int size = 0;
  int joined = 0;
  int finalized = 0;
  int aborted = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<std::int64_t> next;  // number of the next collective, by rank
  std::map<std::int64_t, std::shared_ptr<Operation>> collectives;
  std::map<std::pair<int, int>, std::int64_t> sends;  // messages so far, from and to
  std::map<std::pair<int, int>, std::int64_t> receives;
  std::map<std::tuple<int, int, std::int64_t>, std::shared_ptr<Operation>> messages;
};

std::string text_of(const Shape& shape);
std::size_t bytes_of(ncclDataType_t type);
/// An operation of these ranks that is new.
std::shared_ptr<Operation> new_operation(const std::vector<int>& ranks);
/// Notes what one of its ranks, by place, issues, and complains where it is not what others have
/// issued.
void join(Operation& operation, const std::string& name, std::size_t place, const Shape& shape,
          const void* sent);
/// A number from 0 to `below` - 1.
int draw(int below);
/// Has an abort end with the group that this thread has begun. \returns whether it has begun one
bool put_off(ncclComm* comm);
void finish_aborts(const std::vector<ncclComm*>& comms);

/// A call that no sanitizer watches and nobody else makes at the same time.
class Quiet {
 public:
  explicit Quiet(const char* name)
      : lock_(fake_cuda::Streams::all().mutex),
        error_(static_cast<ncclResult_t>(fake_cuda::failure(name))) {}
  ncclResult_t error() const { return error_; }
  /// Waits until no graph holds the communicator.
  void wait_for_graphs(const ncclComm& comm);

 private:
  fake_cuda::Unwatched unwatched_;
  std::unique_lock<std::mutex> lock_;
  ncclResult_t error_;
};

/// A call that is in progress: NCCL's own thread issues it when it has been asked for so often.
struct Later {
  int asked = 0;
  std::thread::id by;
  std::function<ncclResult_t()> issue;
};

}  // namespace fake_nccl

struct ncclComm {
  std::shared_ptr<fake_nccl::Clique> clique;  // none until all ranks have split
  int rank = 0;
  int splits = 0;  // of it so far
  bool finalized = false;
  bool endless = false;                        // its rank's last call never ends
  std::optional<fake_nccl::Later> later = {};  // NOLINT(*-redundant-member-init): GCC asks for it
  std::shared_ptr<bool> aborted = std::make_shared<bool>(false);  // shared with work of streams
  std::shared_ptr<int> graphs = std::make_shared<int>(0);         // shared with graphs that hold it
};
