#include "planner/export/shell/shell_escapes.h"

#include <cstddef>
#include <cstdint>

#include "planner/export/shell/shell_text.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::uint32_t kNoDigit = 99;

std::uint32_t digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A') + 10;
  return kNoDigit;
}

/// UTF-8 of a code point. \pre code < 2^21
std::string utf8_of(std::uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  std::string made;
  const auto more = [&](unsigned shift) {
    made += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
  };
  if (code < 0x800) {
    made += static_cast<char>(0xC0U | (code >> 6U));
  } else if (code < 0x10000) {
    made += static_cast<char>(0xE0U | (code >> 12U));
    more(6);
  } else {
    made += static_cast<char>(0xF0U | (code >> 18U));
    more(12);
    more(6);
  }
  more(0);
  return made;
}

/// Reads escapes one after the other.
class Escapes {
 public:
  explicit Escapes(std::string_view raw) : raw_(raw) {}

  std::optional<std::string> read() {
    while (at_ < raw_.size() && !ended_) {
      const char c = raw_[at_++];
      if (c == '\\' && at_ < raw_.size()) {
        escape(raw_[at_++]);
      } else {
        made_ += c;
      }
    }
    const bool plain = control_character(made_) == made_.size();
    if (!plain || first_not_utf8(made_) != made_.size()) return std::nullopt;
    return std::move(made_);
  }

 private:
  void escape(char c) {
    constexpr std::string_view kNames = "ntrabfveE\\'\"?";
    constexpr std::string_view kMeant = "\n\t\r\a\b\f\v\x1b\x1b\\'\"?";
    if (const std::size_t at = kNames.find(c); at != std::string_view::npos) {
      made_ += kMeant[at];
    } else if (c >= '0' && c <= '7') {
      --at_;
      put_byte(number(8, 3).value_or(0));
    } else if (c == 'x') {
      const std::optional<std::uint32_t> code = number(16, 2);
      code ? put_byte(*code) : keep(c);
    } else if (c == 'u' || c == 'U') {
      const std::optional<std::uint32_t> code = number(16, c == 'u' ? 4 : 8);
      code ? put_code(*code) : keep(c);
    } else if (c == 'c' && at_ < raw_.size()) {
      put_byte(static_cast<unsigned char>(raw_[at_++]) & 0x1FU);
    } else {
      keep(c);
    }
  }

  void keep(char c) {
    made_ += '\\';
    made_ += c;
  }

  /// A zero ends the text, as in C.
  void put_byte(std::uint32_t byte) {
    ended_ = (byte & 0xFFU) == 0;
    if (!ended_) made_ += static_cast<char>(byte & 0xFFU);
  }

  void put_code(std::uint32_t code) {
    constexpr std::uint32_t kCodes = 1U << 21U;
    ended_ = code == 0;
    if (!ended_) made_ += code < kCodes ? utf8_of(code) : std::string(1, '\xff');
  }

  std::optional<std::uint32_t> number(std::uint32_t base, int most) {
    std::optional<std::uint32_t> made;
    for (int i = 0; i < most && at_ < raw_.size() && digit_of(raw_[at_]) < base; ++i) {
      made = made.value_or(0) * base + digit_of(raw_[at_++]);
    }
    return made;
  }

  std::string_view raw_;
  std::size_t at_ = 0;
  bool ended_ = false;
  std::string made_;
};

}  // namespace

std::optional<std::string> ansi_c_text(std::string_view raw) { return Escapes(raw).read(); }

}  // namespace shardwise
