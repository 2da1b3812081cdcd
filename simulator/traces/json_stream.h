#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise::sim {

/// Puts at most `room` next bytes of a text at `into`. \returns how many; 0 at its end
using ByteSource = std::function<std::size_t(char* into, std::size_t room)>;

enum class JsonToken : std::uint8_t {
  begin_object,
  end_object,
  begin_array,
  end_array,
  key,
  string,
  number,
  truth,  // true or false
  null,
  end,    // of a text that was JSON to its end
  wrong,  // the text is not JSON: problem() says why
};

/// Reads JSON token by token out of a text that may be larger than memory: it holds 1 MiB of it, or
/// a string as long as it is. Takes what RFC 8259 allows, at most 64 levels deep, after a byte
/// order mark or without. A number's value is not looked at.
class JsonStream {
 public:
  static constexpr std::size_t kMostBytesOfAValue = std::size_t{16} << 20;
  static constexpr int kDeepest = 64;

  explicit JsonStream(const ByteSource& source);

  /// There is no text at all. \pre nothing was read
  bool empty() const { return size_ == 0; }
  JsonToken next();

  /// Of a key or a string what it says, of a number its digits, until next() is called again.
  std::string_view text() const { return text_; }

  /// Where the last token ends, counted from 1; columns in bytes.
  std::int64_t line() const { return lines_ + 1; }
  std::int64_t column() const;

  /// After `wrong`: "not JSON: '?' where a key should be"; whether the text is cut off.
  const std::string& problem() const { return problem_; }
  bool ended_early() const { return ended_early_; }

 private:
  /// What may come next.
  enum class Expect : std::uint8_t { value, first_value, key, first_key, separator, nothing };

  bool in_object() const { return depth_ > 0 && (objects_ >> (depth_ - 1) & 1U) != 0; }
  bool refill();
  bool skip_blanks();
  JsonToken value(char first);
  JsonToken open(bool object);
  JsonToken close(bool object);
  JsonToken literal(std::string_view word, JsonToken token);
  JsonToken number();
  bool string();
  bool digits();
  JsonToken after(JsonToken token);
  JsonToken unexpected(const char* wanted);
  JsonToken fail(std::string problem);

  const ByteSource& source_;
  std::vector<char> piece_;
  std::size_t size_ = 0;       // of the text in the piece
  std::size_t at_ = 0;         // what is read next
  std::size_t begin_ = 0;      // of the token that is being read: kept over a refill
  std::uint64_t objects_ = 0;  // a bit a level: object, not array
  int depth_ = 0;
  Expect expect_ = Expect::value;
  std::string_view text_;
  std::string unescaped_;
  std::string key_;
  std::string problem_;
  bool ended_early_ = false;
  std::int64_t lines_ = 0;      // that ended so far
  std::size_t line_begin_ = 0;  // in the text
  std::size_t gone_ = 0;        // of the text, before the piece
};

}  // namespace shardwise::sim
