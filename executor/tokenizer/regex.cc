#include "executor/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <new>
#include <optional>

#include "planner/spec/text/error.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

// Unicode's White_Space as the inside of a class: controls, U+0085 and separators.
// Source: Unicode Character Database, PropList.txt.
constexpr std::string_view kSpaces = R"(\t-\r\x{85}\p{Z})";
constexpr std::uint32_t kMostMatchSteps = 20'000'000;

template <auto kFunction>
struct Free {
  template <class T>
  void operator()(T* p) const {
    kFunction(p);
  }
};
using Code = std::unique_ptr<pcre2_code, Free<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>>;

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

/// The pattern with \s and \S written out; nothing where it has an escape that means something else
/// to Oniguruma.
std::optional<std::string> rewritten(std::string_view pattern) {
  std::string out;
  int depth = 0;  // of classes
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '[') ++depth;
    if (c == ']' && depth > 0) --depth;
    if (c != '\\' || i + 1 == pattern.size()) {
      out += c;
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 'h' || escaped == 'H' || (escaped == 'S' && depth > 0)) return std::nullopt;
    if (escaped == 's') {
      out += depth > 0 ? std::string(kSpaces) : fmt::format("[{}]", kSpaces);
    } else if (escaped == 'S') {
      out += fmt::format("[^{}]", kSpaces);
    } else {
      out += c;
      out += escaped;
    }
  }
  return out;
}

Diagnostic unusable(std::string_view pattern, const std::string& why) {
  return {
      "", 0, 0, "", fmt::format("the pattern \"{}\" cannot be used: {}", shown(pattern, 300), why),
      ""};
}

std::size_t next_character(std::string_view text, std::size_t at) {
  ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80) ++at;
  return at;
}

}  // namespace

struct Regex::Compiled {
  Code code;
};

/// \param named  the pattern as the user has it
Result<Regex> Regex::compiled(std::string_view pattern, std::string_view named,
                              std::uint32_t options) {
  int error = 0;
  std::size_t offset = 0;
  Code code(pcre2_compile(units(pattern), pattern.size(), options, &error, &offset, nullptr));
  if (!code && error == PCRE2_ERROR_HEAP_FAILED) throw std::bad_alloc();
  if (!code) {
    std::array<PCRE2_UCHAR, 200> why = {};
    pcre2_get_error_message(error, why.data(), why.size());
    return unusable(named, reinterpret_cast<const char*>(why.data()));
  }
  // Where there is no compiler for this machine, patterns are interpreted.
  if ((options & PCRE2_LITERAL) == 0) pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  auto made = std::make_shared<Compiled>();
  made->code = std::move(code);
  return Regex(std::move(made));
}

Result<Regex> Regex::compile(std::string_view pattern) {
  const std::optional<std::string> ours = rewritten(pattern);
  if (!ours) return unusable(pattern, "it has \\h, \\H or a \\S in brackets");
  return compiled(*ours, pattern, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
}

Result<Regex> Regex::literal(std::string_view text) {
  return compiled(text, text, PCRE2_UTF | PCRE2_LITERAL);
}

void Regex::split(std::string_view text,
                  const std::function<void(std::string_view piece, bool matched)>& visit) const {
  const MatchContext context(pcre2_match_context_create(nullptr));
  const MatchData match(pcre2_match_data_create_from_pattern(compiled_->code.get(), nullptr));
  if (!context || !match) throw std::bad_alloc();
  pcre2_set_match_limit(context.get(), kMostMatchSteps);
  std::size_t done = 0;  // what was visited
  for (std::size_t from = 0; from < text.size();) {
    const int found = pcre2_match(compiled_->code.get(), units(text), text.size(), from,
                                  PCRE2_NO_UTF_CHECK, match.get(), context.get());
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    if (found < 0) {
      throw IoError(fmt::format("a pattern of the tokenizer takes too long at byte {} of \"{}\"",
                                from, shown(text.substr(from))));
    }
    const std::size_t* const range = pcre2_get_ovector_pointer(match.get());
    const std::size_t begin = range[0];
    const std::size_t end = std::max(range[0], range[1]);
    if (end == begin) {
      from = next_character(text, begin);
      continue;
    }
    if (begin > done) visit(text.substr(done, begin - done), false);
    visit(text.substr(begin, end - begin), true);
    done = from = end;
  }
  if (done < text.size()) visit(text.substr(done), false);
}

}  // namespace shardwise::exec
