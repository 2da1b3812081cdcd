#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <vector>

namespace shardwise::sim {

/// Puts at most `room` next bytes of a text at `into`. \returns how many; 0 at its end
using ByteSource = std::function<std::size_t(char* into, std::size_t room)>;

/// The text, a piece at a time, and the place that was read last.
class TextPieces {
 public:
  /// The parser holds a string whole; a longer one ends the text.
  static constexpr std::size_t kMostBytesOfAValue = std::size_t{16} << 20;

  explicit TextPieces(const ByteSource& source) : source_(source), piece_(std::size_t{1} << 20) {
    refill();
  }

  bool done() const { return size_ == 0; }
  char current() const { return piece_[at_]; }
  void next() {
    if (++at_ == size_) refill();
  }
  /// The parser came to the end of a value.
  void value_ended() { bytes_of_value_ = 0; }
  /// The text was cut off because one value was too long.
  bool value_too_long() const { return bytes_of_value_ > kMostBytesOfAValue; }

  std::int64_t line() {
    lines_ += std::count(piece_.begin() + counted_, piece_.begin() + offset(), '\n');
    counted_ = offset();
    return lines_ + 1;
  }
  /// In bytes, of what was read last.
  std::int64_t column() const {
    std::int64_t column = 0;
    for (std::size_t i = at_; i > 0; --i) {
      if (piece_[i - 1] == '\n') return std::max<std::int64_t>(column, 1);
      ++column;
    }
    return std::max<std::int64_t>(column + before_, 1);
  }

 private:
  std::ptrdiff_t offset() const { return static_cast<std::ptrdiff_t>(at_); }

  void refill() {
    // What lies before the piece: its lines, and the columns of its last line.
    line();
    std::int64_t tail = 0;
    while (tail < offset() && piece_[at_ - 1 - static_cast<std::size_t>(tail)] != '\n') ++tail;
    before_ = tail < offset() ? tail : before_ + tail;
    at_ = 0;
    counted_ = 0;
    size_ = value_too_long() ? 0 : source_(piece_.data(), piece_.size());
    bytes_of_value_ += size_;
  }

  const ByteSource& source_;
  std::vector<char> piece_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  std::int64_t lines_ = 0;  // that ended before `counted_`
  std::ptrdiff_t counted_ = 0;
  std::int64_t before_ = 0;         // columns of its first line
  std::size_t bytes_of_value_ = 0;  // since the last one ended
};

/// Walks the pieces as nlohmann's parser wants to: one character after the other. The end is a
/// cursor without pieces.
class TextCursor {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the library asks for these names
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;
  // NOLINTEND(readability-identifier-naming)

  explicit TextCursor(TextPieces* pieces) : pieces_(pieces) {}
  char operator*() const { return pieces_->current(); }
  TextCursor& operator++() {
    pieces_->next();
    return *this;
  }
  TextCursor operator++(int) {
    const TextCursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TextCursor& other) const { return at_end() == other.at_end(); }
  bool operator!=(const TextCursor& other) const { return !(*this == other); }

 private:
  bool at_end() const { return pieces_ == nullptr || pieces_->done(); }
  TextPieces* pieces_;
};

}  // namespace shardwise::sim
