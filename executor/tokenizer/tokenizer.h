#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/tokenizer/added_tokens.h"
#include "executor/tokenizer/bpe.h"
#include "executor/tokenizer/normalizer.h"
#include "executor/tokenizer/pre_tokenizer.h"

namespace shardwise::exec {

/// A tokenizer as Hugging Face's `tokenizers` stores it, a tokenizer.json with a BPE model: GPT-2,
/// Llama, Mistral, Qwen. A text becomes the tokens that Tokenizer.encode gives there with
/// add_special_tokens=False; what is for single prompts (post_processor, truncation, padding) and
/// for decoding takes no part. Everything else that the file asks for is done or refused by name.
class Tokenizer {
 public:
  static Result<Tokenizer> read(const std::filesystem::path& path);
  /// \param file  its name, for messages
  static Result<Tokenizer> from_json(const JsonValue& json, const std::string& file);

  /// \returns a problem, with its place, when the text is not UTF-8 or a pattern gives up on it
  Result<std::vector<std::uint32_t>> encode(std::string_view text) const;
  /// One more than the largest token, added ones included.
  std::int64_t vocab_size() const;

 private:
  /// Pieces repeat: what they became.
  using Known = std::unordered_map<std::string, std::vector<std::uint32_t>>;

  void encode_section(std::string_view section, bool at_start, Known& known,
                      std::vector<std::uint32_t>& tokens) const;
  void encode_piece(std::string_view piece, Known& known, std::vector<std::uint32_t>& tokens) const;

  AddedTokens added_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Bpe bpe_;
};

}  // namespace shardwise::exec
