#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/tokenizer/normalizer.h"
#include "planner/spec/json/reader.h"

namespace shardwise::exec {

/// Tokens that a text is searched for before anything is split: the `added_tokens` of a
/// tokenizer.json ("<|endoftext|>"). At each place the longest is found, from left to right.
/// Source: github.com/huggingface/tokenizers, tokenizers/src/tokenizer/added_vocabulary.rs.
class AddedTokens {
 public:
  /// A part of a text: a token, or what lies between tokens.
  using Visit = std::function<void(std::string_view part, std::optional<std::uint32_t> token)>;

  /// Refuses single_word.
  static AddedTokens read(const JsonValue& value, const std::string& file,
                          const Normalizer& normalizer, Diagnostics& problems);

  /// Splits by the tokens that are looked for before the text is normalised …
  void split_raw(std::string_view text, const Visit& visit) const { split(raw_, text, visit); }
  /// … and by those that are looked for after.
  void split_normalized(std::string_view text, const Visit& visit) const {
    split(normalized_, text, visit);
  }
  /// One more than the largest token.
  std::int64_t vocab_size() const { return vocab_size_; }

 private:
  struct Token {
    std::string text;
    std::uint32_t number = 0;
    bool takes_left = false;  // white space before it is part of it
    bool takes_right = false;
  };
  static void split(const std::vector<Token>& tokens, std::string_view text, const Visit& visit);

  std::vector<Token> raw_;  // the longest first
  std::vector<Token> normalized_;
  std::int64_t vocab_size_ = 0;
};

}  // namespace shardwise::exec
