#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "planner/spec/diagnostic.h"

namespace shardwise::exec {

/// A text as tokens, one a byte, cut into sequences that a run meets in an order of its own.
///
/// Sequence number n of a run is the same whatever the number of ranks: an epoch goes once through
/// all windows of `sequence` tokens in an order that the seed and the epoch decide, and every
/// window is followed by the token that its last one predicts.
class ByteText {
 public:
  /// \returns what is wrong with the file: unreadable, or shorter than a sequence and a token
  static Result<ByteText> read(const std::filesystem::path& path, std::int64_t sequence,
                               std::uint64_t seed);
  ByteText(std::string text, std::int64_t sequence, std::uint64_t seed);

  std::int64_t windows() const { return windows_; }
  std::int64_t tokens() const { return static_cast<std::int64_t>(text_.size()); }
  /// inputs, targets: [sequence]; targets are the inputs' successors
  void sequence(std::int64_t number, std::span<std::int64_t> inputs,
                std::span<std::int64_t> targets) const;

 private:
  std::int64_t window(std::int64_t number) const;

  std::string text_;
  std::int64_t sequence_ = 0;
  std::int64_t windows_ = 0;
  std::uint64_t seed_ = 0;
};

}  // namespace shardwise::exec
