#include "planner/export/shell/shell_tests.h"

#include <algorithm>
#include <optional>
#include <string>

#include "planner/export/shell/shell_patterns.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

using TestWords = std::vector<std::string>;

Outcome outcome(bool yes) { return yes ? Outcome::yes : Outcome::no; }

/// $NAME or ${NAME} of a variable that nobody set.
bool is_unset(const std::string& value) {
  if (!value.starts_with(kUnknownBegin) || !value.ends_with(kUnknownEnd)) return false;
  std::string name = unmarked(value).substr(1);
  if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
  const bool given = name.size() == 1 && name[0] >= '1' && name[0] <= '9';
  return (is_shell_name(name) && !is_of_slurm(name)) || given;
}

/// What a value counts in [[ … ]]: nothing counts 0.
std::string counted(const std::string& value) {
  return value.empty() || is_unset(value) ? "0" : value;
}

Outcome compared(const std::string& left, const std::string& sign, const std::string& right) {
  if (is_unknown(left) || is_unknown(right)) return Outcome::unknown;
  if (sign == "=" || sign == "==") return outcome(left == right);
  if (sign == "!=") return outcome(left != right);
  const std::optional<std::int64_t> a = parse_integer(left);
  const std::optional<std::int64_t> b = parse_integer(right);
  if (!a || !b) return Outcome::unknown;
  if (sign == "-eq") return outcome(*a == *b);
  if (sign == "-ne") return outcome(*a != *b);
  if (sign == "-lt") return outcome(*a < *b);
  if (sign == "-le") return outcome(*a <= *b);
  if (sign == "-gt") return outcome(*a > *b);
  if (sign == "-ge") return outcome(*a >= *b);
  return Outcome::unknown;
}

/// \param brackets  [[ … ]] and not [ … ], which takes no empty numbers
Outcome test_words(TestWords words, bool brackets) {
  bool negative = false;
  while (!words.empty() && words.front() == "!") {
    negative = !negative;
    words.erase(words.begin());
  }
  Outcome made = Outcome::unknown;
  if (words.empty()) {
    made = Outcome::no;
  } else if (words.size() == 1) {
    if (!is_unknown(words[0])) made = outcome(!words[0].empty());
  } else if (words.size() == 2 && (words[0] == "-z" || words[0] == "-n")) {
    const bool empty = words[1].empty() || is_unset(words[1]);
    if (empty || !is_unknown(words[1])) made = outcome(empty == (words[0] == "-z"));
  } else if (words.size() == 3) {
    const bool counts = brackets && words[1].size() == 3 && words[1].starts_with('-');
    made = counts ? compared(counted(words[0]), words[1], counted(words[2]))
                  : compared(words[0], words[1], words[2]);
  }
  return negative ? negated(made) : made;
}

/// Whether a value is what a pattern of bash stands for.
Outcome fits(const std::string& value, const std::vector<ShellPart>& parts, int line,
             ShellVariables& variables) {
  if (is_unknown(value)) return Outcome::unknown;
  const std::optional<std::string> text = variables.pattern(parts, line);
  const std::optional<ShellPattern> pattern = text ? ShellPattern::read(*text) : std::nullopt;
  return pattern ? outcome(pattern->matches(value)) : Outcome::unknown;
}

Outcome both(Outcome a, Outcome b) {
  if (a == Outcome::no || b == Outcome::no) return Outcome::no;
  return a == Outcome::yes && b == Outcome::yes ? Outcome::yes : Outcome::unknown;
}

}  // namespace

Outcome negated(Outcome outcome) {
  if (outcome == Outcome::unknown) return outcome;
  return outcome == Outcome::yes ? Outcome::no : Outcome::yes;
}

Outcome test_of(const std::vector<ShellWord>& words) {
  constexpr std::size_t kMost = 10;
  if (words.size() > kMost) return Outcome::unknown;
  TestWords texts;
  for (const ShellWord& each : words) texts.push_back(each.text);
  return test_words(std::move(texts), false);
}

Outcome test_of(const std::vector<ShellToken>& tokens, ShellVariables& variables) {
  constexpr std::size_t kMost = 100;
  if (tokens.size() > kMost) return Outcome::unknown;
  Outcome any = Outcome::no;   // of what || joins
  Outcome all = Outcome::yes;  // of what && joins
  TestWords words;
  bool has_pattern = false;  // VALUE == PATTERN
  Outcome matched = Outcome::unknown;
  const auto end = [&] {
    const bool negative = words.size() == 4 && words.front() == "!";
    const Outcome made =
        has_pattern ? (negative ? negated(matched) : matched) : test_words(std::move(words), true);
    all = both(all, made);
    words.clear();
    has_pattern = false;
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const ShellToken& token = tokens[i];
    if (token.kind == ShellToken::Kind::and_if || token.kind == ShellToken::Kind::or_if) {
      end();
      if (token.kind == ShellToken::Kind::and_if) continue;
      any = negated(both(negated(any), negated(all)));
      all = Outcome::yes;
    } else if (!token.is_word()) {
      return Outcome::unknown;  // parentheses, < and >
    } else {
      const bool pattern = i > 0 && (tokens[i - 1].bare() == "==" || tokens[i - 1].bare() == "=" ||
                                     tokens[i - 1].bare() == "!=");
      if (pattern && words.size() > 1) {
        matched = fits(words[words.size() - 2], token.parts, token.line, variables);
        if (tokens[i - 1].bare() == "!=") matched = negated(matched);
        has_pattern = true;
      }
      words.push_back(variables.joined(token.parts, token.line));
    }
  }
  end();
  return negated(both(negated(any), negated(all)));
}

Outcome matches(const std::string& value, const ShellToken& pattern, ShellVariables& variables) {
  if (pattern.bare() == "*") return Outcome::yes;
  return fits(value, pattern.parts, pattern.line, variables);
}

}  // namespace shardwise
