#include "planner/export/shell/shell_arithmetic.h"

#include <algorithm>
#include <limits>

#include "planner/export/shell/shell_variables.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

using ArithmeticValue = std::optional<std::int64_t>;

class Sum {
 public:
  Sum(std::string_view text, const std::function<ArithmeticValue(const std::string&)>& value)
      : text_(text), value_(value) {}

  ArithmeticValue read() {
    const ArithmeticValue made = terms();
    return peek() == '\0' && at_ == text_.size() ? made : std::nullopt;
  }

 private:
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  static ArithmeticValue apply(ArithmeticValue left, char sign, ArithmeticValue right) {
    if (!left || !right) return std::nullopt;
    std::int64_t made = 0;
    bool wraps = false;
    switch (sign) {
      case '+':
        wraps = __builtin_add_overflow(*left, *right, &made);
        break;
      case '-':
        wraps = __builtin_sub_overflow(*left, *right, &made);
        break;
      case '*':
        wraps = __builtin_mul_overflow(*left, *right, &made);
        break;
      default:
        if (*right == 0 || *left == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
        made = sign == '/' ? *left / *right : *left % *right;
    }
    return wraps ? std::nullopt : ArithmeticValue(made);
  }

  ArithmeticValue terms() {
    ArithmeticValue made = factors();
    while (made && (peek() == '+' || peek() == '-')) {
      const char sign = text_[at_++];
      made = apply(made, sign, factors());
    }
    return made;
  }

  ArithmeticValue factors() {
    ArithmeticValue made = one();
    while (made && (peek() == '*' || peek() == '/' || peek() == '%')) {
      const char sign = text_[at_++];
      made = apply(made, sign, one());
    }
    return made;
  }

  ArithmeticValue one() {
    constexpr int kMostNested = 50;
    if (peek() == '(') {
      if (++depth_ > kMostNested) return std::nullopt;
      ++at_;
      const ArithmeticValue made = terms();
      if (peek() != ')') return std::nullopt;
      ++at_;
      --depth_;
      return made;
    }
    if (peek() == '-' || peek() == '+') {
      if (++depth_ > kMostNested) return std::nullopt;
      const char sign = text_[at_++];
      const ArithmeticValue made = one();
      --depth_;
      return sign == '-' ? apply(0, '-', made) : made;
    }
    std::string name;
    bool braced = false;
    if (peek() == '$') {
      ++at_;
      braced = at_ < text_.size() && text_[at_] == '{';
      if (braced) ++at_;
    }
    while (at_ < text_.size() && in_shell_names(text_[at_])) name += text_[at_++];
    if (braced && peek() != '}') return std::nullopt;
    if (braced) ++at_;
    // 010 is 8 in a shell.
    if (name.size() > 1 && name.front() == '0') return std::nullopt;
    return is_shell_name(name) ? value_(name) : parse_integer(name);
  }

  std::string_view text_;
  const std::function<ArithmeticValue(const std::string&)>& value_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(
    std::string_view text, const std::function<ArithmeticValue(const std::string& name)>& value) {
  return Sum(text, value).read();
}

}  // namespace shardwise
