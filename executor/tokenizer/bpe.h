#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planner/spec/json/reader.h"

namespace shardwise::exec {

/// Byte-pair encoding: a piece of text becomes its characters' tokens, of which neighbours are
/// joined as long as a pair of them is in the list of merges, the pair that stands first in the
/// list first, of equal ones the leftmost. Source: Sennrich et al., arXiv:1508.07909, section 3.2;
/// github.com/huggingface/tokenizers, tokenizers/src/models/bpe.
class Bpe {
 public:
  /// Reads the `model` of a tokenizer.json. Not read, and refused: dropout, prefixes and suffixes
  /// of words, models of another type. A vocabulary must have a token for whatever a text may hold:
  /// an unknown token, the 256 of byte_fallback ("<0x0A>"), or with `byte_level` those of the
  /// characters of bytes.
  static Bpe read(const JsonValue& value, const std::string& file, const std::string& path,
                  bool byte_level, Diagnostics& problems);

  /// Appends the tokens of a piece. \pre UTF-8
  void encode(std::string_view piece, std::vector<std::uint32_t>& tokens) const;
  std::optional<std::uint32_t> find(const std::string& token) const;
  /// One more than the largest token.
  std::int64_t vocab_size() const { return vocab_size_; }

 private:
  /// Token that a pair of tokens becomes, and how early it does.
  struct Merge {
    std::uint32_t rank = 0;
    std::uint32_t token = 0;
  };

  static std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
    return (static_cast<std::uint64_t>(left) << 32U) | right;
  }
  void read_vocabulary(ObjectReader& reader);
  void read_merges(ObjectReader& reader);
  void read_fallback(ObjectReader& reader, bool byte_level);
  void add_characters(std::string_view piece, std::vector<std::uint32_t>& symbols) const;
  void merge_all(std::vector<std::uint32_t>& symbols) const;

  std::unordered_map<std::string, std::uint32_t> vocabulary_;
  std::unordered_map<std::uint64_t, Merge> merges_;  // by pair_of
  std::vector<std::uint32_t> byte_tokens_;           // of byte_fallback; empty without
  std::optional<std::uint32_t> unknown_;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;  // a piece that is a token is not made of merges
  std::int64_t vocab_size_ = 0;
};

}  // namespace shardwise::exec
