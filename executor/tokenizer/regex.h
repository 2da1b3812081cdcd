#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// A regular expression over UTF-8 with Unicode's properties (\p{L}), as tokenizer.json has them.
///
/// Patterns there are Oniguruma's. PCRE2 reads what the published ones use alike, but for white
/// space: \s is rewritten to Unicode's White_Space (PCRE2's has U+180E besides). \h, which means
/// another thing in each, is refused. PCRE2's properties may be of an older Unicode.
/// Source: github.com/huggingface/tokenizers, utils/onig.rs; pcre2pattern(3).
class Regex {
 public:
  /// \returns what is wrong with the pattern
  static Result<Regex> compile(std::string_view pattern);
  /// One that finds this text, of some 32 kB at most. \pre it is not empty
  static Result<Regex> literal(std::string_view text);

  /// Calls visit(piece, matched) for matches and for what is between them, so that the pieces are
  /// the text. Empty pieces are left out.
  /// \pre text is UTF-8. \throws IoError when a match takes too many steps
  /// \throws std::bad_alloc
  void split(std::string_view text,
             const std::function<void(std::string_view piece, bool matched)>& visit) const;

 private:
  struct Compiled;
  static Result<Regex> compiled(std::string_view pattern, std::string_view named,
                                std::uint32_t options);
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace shardwise::exec
