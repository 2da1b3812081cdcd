#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

/// A pattern of bash: *, ?, [a-z] and [!a-z]; \c is the character c.
class ShellPattern {
 public:
  /// Nothing for what is not read: [:classes:], ( of extended patterns, other than ASCII.
  static std::optional<ShellPattern> read(std::string_view text);

  /// Whether it is the whole text.
  bool matches(std::string_view text) const;
  /// The text without the shortest or the longest beginning, or end, that it matches.
  std::string without_beginning(std::string_view text, bool longest) const;
  std::string without_end(std::string_view text, bool longest) const;
  /// The text with `with` for what it matches, the longest from the left.
  std::string replaced(std::string_view text, std::string_view with, bool all) const;
  /// The end of the longest match that begins at `from`; nothing where there is none.
  std::optional<std::size_t> longest(std::string_view text, std::size_t from) const;

  std::size_t size() const { return steps_.size(); }

 private:
  struct Range {
    char first = '\0';
    char last = '\0';
  };
  struct Step {
    bool star = false;
    bool negated = false;
    std::vector<Range> ranges;  // of one character; of ? none and negated
    bool takes(char c) const;
  };

  template <class Accept>
  void run(std::string_view text, std::size_t from, const Accept& accept) const;
  bool read_set(std::string_view text, std::size_t& at);

  std::vector<Step> steps_;
};

}  // namespace shardwise
