#pragma once

#include <cstdint>
#include <vector>

namespace shardwise {

/// A tensor that a buffer has a place for: of matrices, `row` is dimension 1 (module_row()).
struct ChunkedTensor {
  std::int64_t elements = 0;
  std::int64_t row = 1;
  std::int64_t count = 1;
};

/// Elements of a buffer between two tensors that belong to none.
struct BufferGap {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Layout that Megatron-FSDP gives the tensors of a unit, or of a bucket outside the units.
///
/// All start at multiples of a chunk, the least common multiple of their rows, so that no rank's
/// piece begins inside a row. Two tensors that end inside a chunk may share it, one from its
/// start and one up to its end; those smaller than a chunk fill what is left, or follow at the end.
/// Source: Megatron-LM@d98e8a64:megatron/core/distributed/fsdp/src/megatron_fsdp/
/// param_and_grad_buffer.py:259-386 (build_data_parallel_buffer_index), 1875-1913.
struct TensorChunks {
  std::vector<ChunkedTensor> tensors;  // as registered
  std::int64_t chunk = 1;              // a buffer ends at a multiple of ranks x this
  std::int64_t length = 0;             // elements up to the end of the last tensor
  std::vector<BufferGap> gaps;

  /// The buffer's elements. \param ranks  that share it
  std::int64_t padded(std::int64_t ranks) const {
    const std::int64_t step = ranks * chunk;
    return (length + step - 1) / step * step;
  }
};
/// \param tensors  as registered
/// \param most  of a chunk, unless one row is longer
TensorChunks tensor_chunks(std::vector<ChunkedTensor> tensors, std::int64_t most);

/// Elements that the fullest of the ranks that share buffers lacks of its pieces, for gaps and for
/// what pads the ends.
class LackingElements {
 public:
  explicit LackingElements(std::int64_t ranks) : ranks_(ranks) {}
  /// \pre `buffer` outlives this
  /// \param padded  the buffer's elements, a multiple of the ranks
  void add(const TensorChunks& buffer, std::int64_t padded, std::int64_t count);
  std::int64_t of_fullest() const;

 private:
  struct Buffer {
    const TensorChunks* chunks;
    std::int64_t padded;
    std::int64_t count;
  };
  std::int64_t ranks_;
  std::vector<Buffer> buffers_;
};

}  // namespace shardwise
