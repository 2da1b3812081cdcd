#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <streambuf>
#include <vector>

namespace shardwise::sim {

/// Puts at most `room` next bytes of a text at `into`. \returns how many; 0 at its end
using ByteSource = std::function<std::size_t(char* into, std::size_t room)>;

/// A text that may be larger than memory, to read from an istream: it holds 1 MiB of it, knows
/// where in it a byte is, and ends where a reader that keeps what it reads would keep too much.
class PiecewiseText : public std::streambuf {
 public:
  /// Most bytes between one call of let_go() and the next.
  static constexpr std::int64_t kMostKept = std::int64_t{16} << 20;

  struct Place {
    std::int64_t line = 1;
    std::int64_t column = 1;  // in bytes
  };

  explicit PiecewiseText(const ByteSource& source);

  /// Bytes that were read.
  std::int64_t read() const { return before_ + (gptr() - eback()); }

  /// The reader keeps nothing of what it has read.
  void let_go() { kept_from_ = read(); }
  bool kept_too_much() const { return kept_too_much_; }

  /// The place of the byte before `bytes` of the text; that of its first byte before them all.
  /// \pre no less than what was given before, no more than was read, and after the piece before
  Place place_before(std::int64_t bytes);

 protected:
  int_type underflow() override;

 private:
  const ByteSource& source_;
  std::vector<char> piece_;
  std::int64_t before_ = 0;  // bytes of the text before the piece
  std::int64_t kept_from_ = 0;
  bool kept_too_much_ = false;
  std::int64_t counted_ = 0;  // bytes of which the lines are counted
  std::int64_t lines_ = 0;    // that ended in them
  std::int64_t line_begin_ = 0;
};

}  // namespace shardwise::sim
