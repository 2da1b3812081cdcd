#include "simulator/traces/piecewise_text.h"

#include <algorithm>
#include <cstring>

namespace shardwise::sim {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

}  // namespace

PiecewiseText::PiecewiseText(const ByteSource& source) : source_(source), piece_(kPiece) {
  setg(piece_.data(), piece_.data(), piece_.data());
}

PiecewiseText::int_type PiecewiseText::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  place_before(read());
  before_ = read();
  setg(piece_.data(), piece_.data(), piece_.data());
  kept_too_much_ = before_ - kept_from_ > kMostKept;
  if (kept_too_much_) return traits_type::eof();
  const std::size_t count = source_(piece_.data(), piece_.size());
  setg(piece_.data(), piece_.data(), piece_.data() + count);
  return count > 0 ? traits_type::to_int_type(*gptr()) : traits_type::eof();
}

PiecewiseText::Place PiecewiseText::place_before(std::int64_t bytes) {
  const char* const end = eback() + (bytes - before_);
  const char* at = eback() + (counted_ - before_);
  while (at < end) {
    const auto room = static_cast<std::size_t>(end - at);
    const auto* const newline = static_cast<const char*>(std::memchr(at, '\n', room));
    if (newline == nullptr) break;
    at = newline + 1;
    ++lines_;
    line_begin_ = before_ + (at - eback());
  }
  counted_ = bytes;
  return {lines_ + 1, std::max<std::int64_t>(bytes - line_begin_, 1)};
}

}  // namespace shardwise::sim
