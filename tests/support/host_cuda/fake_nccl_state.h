#pragma once

// What the calls of the NCCL fake have in common. All behind the mutex of the CUDA fake's streams.
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace fake_nccl {

/// What a rank says of a collective: the same on all.
struct Shape {
  std::string call;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// One collective of all ranks, or one message of two.
struct Operation {
  Shape shape;
  int first = 0;                  // the rank that issued first
  std::vector<const void*> sent;  // by rank
  std::vector<bool> issued;       // by rank
  int arrived = 0;                // streams that have come to it
  int read = 0;                   // streams that have read what the others sent
  bool broken = false;            // it was complained of, or a rank aborted
  void* begun = nullptr;          // edge: all that was sent is there
  void* over = nullptr;           // edge: all has been read
};

struct Clique {
  std::string name;
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
/// An operation of so many ranks that is new.
std::shared_ptr<Operation> new_operation(int ranks);
/// Notes what a rank issues, and complains where it is not what others have issued.
void join(Operation& operation, const std::string& name, int rank, const Shape& shape,
          const void* sent);

}  // namespace fake_nccl

struct ncclComm {
  std::shared_ptr<fake_nccl::Clique> clique;  // none until all ranks have split
  int rank = 0;
  int splits = 0;  // of it so far
  bool finalized = false;
};
