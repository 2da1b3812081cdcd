#include "executor/tokenizer/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>

namespace shardwise::exec {
namespace {

/// Bytes of a token, normalised. Published ones have fewer than 100.
constexpr std::size_t kLongestToken = std::size_t{1} << 16;

const Regex& space() {
  static const Regex kSpace = *Regex::compile(R"(\s+)");
  return kSpace;
}

/// Bytes of white space that `text` begins with.
std::size_t leading_space(std::string_view text) {
  std::size_t bytes = 0;
  bool first = true;
  space().split(text, [&](std::string_view piece, bool matched) {
    if (first && matched) bytes = piece.size();
    first = false;
  });
  return bytes;
}

std::size_t trailing_space(std::string_view text) {
  std::size_t bytes = 0;
  space().split(text,
                [&](std::string_view piece, bool matched) { bytes = matched ? piece.size() : 0; });
  return bytes;
}

}  // namespace

AddedTokens AddedTokens::read(const JsonValue& value, const std::string& file,
                              const Normalizer& normalizer, Diagnostics& problems) {
  AddedTokens made;
  for (std::size_t i = 0; i < value.elements.size(); ++i) {
    ObjectReader reader(value.elements[i], file, fmt::format("/added_tokens/{}", i), problems);
    Token token;
    token.number = static_cast<std::uint32_t>(reader.integer("id", 0, (std::int64_t{1} << 31) - 1));
    token.text = reader.string("content");
    token.takes_left = reader.boolean_or("lstrip", false);
    token.takes_right = reader.boolean_or("rstrip", false);
    const bool normalized = reader.boolean_or("normalized", true);
    reader.boolean_or("special", false);  // how it is decoded
    if (reader.boolean_or("single_word", false)) {
      reader.fail("single_word", "tokens are found inside words too", "false is");
    }
    reader.reject_unknown();
    made.vocab_size_ = std::max(made.vocab_size_, std::int64_t{token.number} + 1);
    if (normalized) token.text = normalizer.apply(token.text);
    if (token.text.size() > kLongestToken) {
      // Of thousands that the normalizer makes long none is kept.
      reader.fail("content", fmt::format("makes a token of {} bytes, of {} at most",
                                         token.text.size(), kLongestToken));
      return {};
    }
    if (!token.text.empty()) (normalized ? made.normalized_ : made.raw_).push_back(token);
  }
  const auto longer = [](const Token& a, const Token& b) { return a.text.size() > b.text.size(); };
  std::ranges::stable_sort(made.raw_, longer);
  std::ranges::stable_sort(made.normalized_, longer);
  return made;
}

void AddedTokens::split(const std::vector<Token>& tokens, std::string_view text,
                        const Visit& visit) {
  if (tokens.empty()) {
    if (!text.empty()) visit(text, std::nullopt);
    return;
  }
  std::bitset<256> begins;
  for (const Token& token : tokens) begins.set(static_cast<unsigned char>(token.text.front()));
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto here = [&](const Token& token) { return text.substr(at).starts_with(token.text); };
    const auto found = begins.test(static_cast<unsigned char>(text[at]))
                           ? std::ranges::find_if(tokens, here)
                           : tokens.end();
    if (found == tokens.end()) {
      ++at;
      continue;
    }
    std::size_t begin = std::max(at, done);
    std::size_t end = at + found->text.size();
    at = end;
    if (found->takes_left) begin -= trailing_space(text.substr(done, begin - done));
    if (found->takes_right) end += leading_space(text.substr(end));
    if (begin > done) visit(text.substr(done, begin - done), std::nullopt);
    visit(text.substr(begin, end - begin), found->number);
    done = std::max(done, end);
  }
  if (done < text.size()) visit(text.substr(done), std::nullopt);
}

}  // namespace shardwise::exec
