#include "simulator/traces/json_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "planner/spec/utf8.h"
#include "simulator/traces/json_escapes.h"

namespace shardwise::sim {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Bytes of a string that say what they are: no quote, backslash, control character, none of
/// UTF-8's longer sequences.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

JsonStream::JsonStream(const ByteSource& source) : source_(source), piece_(kPiece) {
  while (size_ < 3 && refill()) {
  }
  if (size_ >= 3 && std::memcmp(piece_.data(), "\xEF\xBB\xBF", 3) == 0) at_ = 3;
}

std::int64_t JsonStream::column() const {
  const std::size_t columns = gone_ + at_ - line_begin_;
  return std::max<std::int64_t>(static_cast<std::int64_t>(columns), 1);
}

/// More text behind what there is; what was read before begin_ goes. \returns false at the end, and
/// where a token is too long
bool JsonStream::refill() {
  if (begin_ > 0) {
    std::memmove(piece_.data(), piece_.data() + begin_, size_ - begin_);
    size_ -= begin_;
    at_ -= begin_;
    gone_ += begin_;
    begin_ = 0;
  }
  if (size_ == piece_.size()) {
    if (size_ > kMostBytesOfAValue) {
      fail(fmt::format("a value of more than {} MiB", kMostBytesOfAValue >> 20));
      return false;
    }
    piece_.resize(std::min(2 * size_, kMostBytesOfAValue + kPiece));
  }
  const std::size_t count = source_(piece_.data() + size_, piece_.size() - size_);
  size_ += count;
  return count > 0;
}

/// \returns false at the end of the text
bool JsonStream::skip_blanks() {
  for (;;) {
    while (at_ < size_) {
      const char c = piece_[at_];
      if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return true;
      ++at_;
      if (c != '\n') continue;
      ++lines_;  // in strings there are none
      line_begin_ = gone_ + at_;
    }
    begin_ = at_;
    if (!refill()) return false;
  }
}

JsonToken JsonStream::next() {
  if (!problem_.empty()) return JsonToken::wrong;
  for (;;) {
    if (!skip_blanks()) {
      if (expect_ == Expect::nothing) return JsonToken::end;
      ended_early_ = true;
      return fail("not JSON: it ends too early");
    }
    begin_ = at_;
    const char c = piece_[at_];
    switch (expect_) {
      case Expect::separator:
        if (c == ',') {
          ++at_;
          expect_ = in_object() ? Expect::key : Expect::value;
          continue;
        }
        if (c == (in_object() ? '}' : ']')) return close(in_object());
        return unexpected(in_object() ? "',' or '}'" : "',' or ']'");
      case Expect::first_key:
      case Expect::key:
        if (c == '}' && expect_ == Expect::first_key) return close(true);
        if (c != '"') return unexpected("a key");
        if (!string()) return JsonToken::wrong;
        if (at_ == size_ || piece_[at_] != ':') {  // what follows may move the piece
          key_.assign(text_);
          text_ = key_;
          if (!skip_blanks() || piece_[at_] != ':') return unexpected("':'");
        }
        ++at_;
        expect_ = Expect::value;
        return JsonToken::key;
      case Expect::first_value:
        if (c == ']') return close(false);
        return value(c);
      case Expect::value:
        return value(c);
      case Expect::nothing:
        return unexpected("the end of the text");
    }
  }
}

JsonToken JsonStream::value(char first) {
  switch (first) {
    case '{':
      return open(true);
    case '[':
      return open(false);
    case '"':
      return string() ? after(JsonToken::string) : JsonToken::wrong;
    case 't':
      return literal("true", JsonToken::truth);
    case 'f':
      return literal("false", JsonToken::truth);
    case 'n':
      return literal("null", JsonToken::null);
    default:
      return first == '-' || is_digit(first) ? number() : unexpected("a value");
  }
}

JsonToken JsonStream::open(bool object) {
  ++at_;
  if (depth_ == kDeepest) return fail(fmt::format("nested deeper than {} levels", kDeepest));
  const std::uint64_t bit = std::uint64_t{1} << depth_;
  objects_ = object ? objects_ | bit : objects_ & ~bit;
  ++depth_;
  expect_ = object ? Expect::first_key : Expect::first_value;
  return object ? JsonToken::begin_object : JsonToken::begin_array;
}

JsonToken JsonStream::close(bool object) {
  ++at_;
  --depth_;
  return after(object ? JsonToken::end_object : JsonToken::end_array);
}

JsonToken JsonStream::after(JsonToken token) {
  expect_ = depth_ == 0 ? Expect::nothing : Expect::separator;
  return token;
}

JsonToken JsonStream::literal(std::string_view word, JsonToken token) {
  for (const char c : word) {
    if ((at_ == size_ && !refill()) || piece_[at_] != c) return unexpected("a value");
    ++at_;
  }
  return after(token);
}

/// One digit or more.
bool JsonStream::digits() {
  std::size_t count = 0;
  for (;; ++count, ++at_) {
    if (at_ == size_ && !refill()) break;
    if (!is_digit(piece_[at_])) break;
  }
  return count > 0;
}

JsonToken JsonStream::number() {
  const auto is = [this](char a, char b) {
    const bool there = at_ < size_ || refill();
    if (!there || (piece_[at_] != a && piece_[at_] != b)) return false;
    ++at_;
    return true;
  };
  is('-', '-');
  if (!is('0', '0') && !digits()) return unexpected("a digit");
  if (is('.', '.') && !digits()) return unexpected("a digit");
  if (is('e', 'E')) {
    is('+', '-');
    if (!digits()) return unexpected("a digit");
  }
  if (!problem_.empty()) return JsonToken::wrong;
  text_ = {piece_.data() + begin_, at_ - begin_};
  return after(JsonToken::number);
}

bool JsonStream::string() {
  ++at_;
  bool escapes = false;
  bool wide = false;
  for (;;) {
    while (at_ < size_ && kPlain[static_cast<unsigned char>(piece_[at_])]) ++at_;
    if (at_ == size_) {
      if (refill()) continue;
      ended_early_ = problem_.empty();
      fail("not JSON: a string does not end");
      return false;
    }
    const char c = piece_[at_];
    if (c == '"') break;
    if (c == '\\') {
      escapes = true;
      ++at_;
      if (at_ == size_ && !refill()) continue;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      ++at_;
      fail("not JSON: a control character in a string");
      return false;
    } else {
      wide = true;
    }
    ++at_;
  }
  const std::string_view raw(piece_.data() + begin_ + 1, at_ - begin_ - 1);
  ++at_;
  if (wide && first_not_utf8(raw) != raw.size()) {
    fail("not JSON: a string is not UTF-8");
    return false;
  }
  text_ = raw;
  if (!escapes) return true;
  if (!unescape_json(raw, unescaped_)) {
    fail("not JSON: a backslash before what it does not go with");
    return false;
  }
  text_ = unescaped_;
  return true;
}

JsonToken JsonStream::unexpected(const char* wanted) {
  if (at_ >= size_) {
    ended_early_ = problem_.empty();
    return fail("not JSON: it ends too early");
  }
  const std::size_t most = std::min<std::size_t>(size_ - at_, 4);
  std::string found = shown(std::string_view(piece_.data() + at_, most), most);
  if (static_cast<unsigned char>(piece_[at_]) < 0x80)
    found = shown(std::string_view(&piece_[at_], 1));
  ++at_;
  return fail(fmt::format("not JSON: '{}' where {} should be", found, wanted));
}

/// The first problem stays.
JsonToken JsonStream::fail(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
  return JsonToken::wrong;
}

}  // namespace shardwise::sim
