#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "executor/data/token_stream.h"

namespace shardwise::exec {

/// A stream cut into sequences that a run meets in an order of its own.
///
/// Sequence number n of a run is the same whatever the number of ranks: an epoch goes once through
/// all windows of `sequence_length` tokens in an order that the seed and the epoch decide, and
/// every window is followed by the token that its last one predicts. So the number of the next
/// sequence is all that a run must remember to go on.
class TokenSequences {
 public:
  /// \param source  the file, for messages
  /// \returns a problem when there is no sequence and one token more, or a token that the model
  ///          does not have. Of long streams the first 2^26 tokens are looked at; sequence()
  ///          refuses those after them.
  static Result<TokenSequences> cut(TokenStream stream, std::int64_t sequence_length,
                                    std::int64_t vocab_size, std::uint64_t seed,
                                    const std::string& source);

  std::int64_t windows() const { return windows_; }
  std::int64_t tokens() const { return stream_.tokens(); }
  /// inputs, targets: [sequence_length]; targets are the inputs' successors
  /// Throws BadInput for a token that is not the model's.
  void sequence(std::int64_t number, std::span<std::int64_t> inputs,
                std::span<std::int64_t> targets) const;

 private:
  TokenSequences(TokenStream stream, std::int64_t sequence_length, std::int64_t vocab_size,
                 std::uint64_t seed, std::string source);
  std::int64_t window(std::int64_t number) const;

  TokenStream stream_;
  std::int64_t sequence_length_ = 0;
  std::int64_t windows_ = 0;
  std::int64_t vocab_size_ = 0;
  std::uint64_t seed_ = 0;
  std::string source_;
};

/// Which sequences of a step one data-parallel rank reads. Micro-batch j of rank r is number
/// j x ranks + r of the step, so the ranks together read the same sequences in the same order
/// whatever their number.
struct BatchShare {
  std::int64_t ranks = 1;
  std::int64_t rank = 0;
  std::int64_t microbatches = 1;      // of a rank
  std::int64_t micro_batch_size = 1;  // sequences

  std::int64_t batch() const { return ranks * microbatches * micro_batch_size; }
  /// Number of the first sequence of a micro-batch, in a step that begins with number `position`.
  std::int64_t first(std::int64_t position, std::int64_t microbatch) const {
    return position + (microbatch * ranks + rank) * micro_batch_size;
  }
};

}  // namespace shardwise::exec
