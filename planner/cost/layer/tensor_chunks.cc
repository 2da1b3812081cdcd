#include "planner/cost/layer/tensor_chunks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace shardwise {
namespace {

/// Their least common multiple, no more than `most` unless one of them is.
std::int64_t bounded_common_multiple(std::int64_t chunk, std::int64_t row, std::int64_t most) {
  const std::int64_t pieces = chunk / std::gcd(chunk, row);
  return pieces > most / row ? std::max(most, row) : pieces * row;
}

/// The chunk that tensors agree on, one after the other. Those of longer rows come first.
std::int64_t chunk_of(const std::vector<ChunkedTensor>& tensors, std::int64_t most) {
  std::int64_t chunk = tensors.front().row;
  for (const ChunkedTensor& each : tensors) {
    if (each.elements >= chunk) chunk = bounded_common_multiple(chunk, each.row, most);
  }
  return chunk;
}

/// Places tensors in a buffer, in the order of chunk_of().
class Placer {
 public:
  Placer(const std::vector<ChunkedTensor>& tensors, TensorChunks& result)
      : result_(result), chunk_(result.chunk) {
    for (const ChunkedTensor& each : tensors) {
      const bool divides = each.elements % chunk_ == 0;
      const bool small = each.elements < chunk_;
      for (std::int64_t i = 0; i < (divides ? 1 : each.count); ++i) {
        (small ? small_ : large_).push_back(divides ? each.elements * each.count : each.elements);
      }
    }
  }

  void run() {
    while (!large_.empty()) {
      const std::int64_t elements = take(large_, large_.begin());
      if (elements % chunk_ == 0) {
        result_.length += elements;
      } else {
        place(elements);
      }
    }
    result_.length += std::accumulate(small_.begin(), small_.end(), std::int64_t{0});
  }

 private:
  using Tensors = std::vector<std::int64_t>;  // elements of each

  static std::int64_t take(Tensors& from, Tensors::const_iterator at) {
    const std::int64_t elements = *at;
    from.erase(at);
    return elements;
  }

  /// A tensor that ends inside a chunk, and what fills that chunk.
  void place(std::int64_t elements) {
    const std::int64_t rest = elements % chunk_;
    std::int64_t gap = result_.length + elements;
    result_.length = gap - rest + chunk_;
    std::int64_t room = chunk_ - rest;
    const auto partner = std::ranges::find_if(
        large_, [&](std::int64_t each) { return each % chunk_ != 0 && each % chunk_ <= room; });
    std::int64_t gap_end = result_.length;
    if (partner != large_.end()) {
      const std::int64_t other = take(large_, partner);
      room -= other % chunk_;
      gap_end -= other % chunk_;
      result_.length += other / chunk_ * chunk_;
    }
    for (auto each = small_.begin(); each != small_.end();) {
      if (*each > room) {
        ++each;
        continue;
      }
      room -= *each;
      gap += *each;
      each = small_.erase(each);
    }
    if (gap < gap_end) result_.gaps.push_back({gap, gap_end});
  }

  TensorChunks& result_;
  std::int64_t chunk_;
  Tensors large_;
  Tensors small_;
};

}  // namespace

TensorChunks tensor_chunks(std::vector<ChunkedTensor> tensors, std::int64_t most) {
  TensorChunks result;
  std::erase_if(tensors, [](const ChunkedTensor& each) { return each.elements == 0; });
  result.tensors = tensors;
  if (tensors.empty()) return result;
  std::ranges::stable_sort(tensors, std::greater<>(), &ChunkedTensor::row);
  result.chunk = chunk_of(tensors, most);
  Placer(tensors, result).run();
  return result;
}

void LackingElements::add(const TensorChunks& buffer, std::int64_t padded, std::int64_t count) {
  if (buffer.length > 0) buffers_.push_back({&buffer, padded, count});
}

std::int64_t LackingElements::of_fullest() const {
  const bool first_is_full = std::ranges::all_of(buffers_, [&](const Buffer& each) {
    return each.chunks->gaps.empty() && each.chunks->length >= each.padded / ranks_;
  });
  if (first_is_full) return 0;
  std::map<std::int64_t, std::int64_t> lacking;  // by rank
  for (const Buffer& each : buffers_) {
    const std::int64_t piece = each.padded / ranks_;
    const auto leave_out = [&](const BufferGap& gap) {
      for (std::int64_t at = gap.begin; at < gap.end;) {
        const std::int64_t rank = at / piece;
        const std::int64_t next = std::min(gap.end, (rank + 1) * piece);
        lacking[rank] += (next - at) * each.count;
        at = next;
      }
    };
    for (const BufferGap& gap : each.chunks->gaps) leave_out(gap);
    leave_out({each.chunks->length, each.padded});
  }
  if (std::ssize(lacking) < ranks_) return 0;
  std::int64_t least = lacking.begin()->second;
  for (const auto& [rank, elements] : lacking) least = std::min(least, elements);
  return least;
}

}  // namespace shardwise
