#include <fmt/format.h>

#include <algorithm>

#include "executor/tokenizer/bpe.h"
#include "executor/tokenizer/pre_tokenizer.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;

/// The two tokens of a merge: ["a", "b"] or, in older files, "a b".
std::optional<std::pair<std::string, std::string>> tokens_of(const JsonValue& merge) {
  if (merge.kind == JsonValue::Kind::array && merge.elements.size() == 2) {
    const JsonValue& left = merge.elements[0];
    const JsonValue& right = merge.elements[1];
    const bool texts =
        left.kind == JsonValue::Kind::string && right.kind == JsonValue::Kind::string;
    if (texts) return std::pair(left.string, right.string);
  }
  if (merge.kind != JsonValue::Kind::string) return std::nullopt;
  const std::size_t space = merge.string.find(' ');
  if (space == std::string::npos || merge.string.find(' ', space + 1) != std::string::npos) {
    return std::nullopt;
  }
  return std::pair(merge.string.substr(0, space), merge.string.substr(space + 1));
}

}  // namespace

void Bpe::read_vocabulary(ObjectReader& reader) {
  const JsonValue* const vocabulary = reader.object("vocab");
  if (vocabulary == nullptr) return;
  if (vocabulary->kind != JsonValue::Kind::object) {
    return reader.fail("vocab", "is no object of tokens and their numbers");
  }
  vocabulary_.reserve(vocabulary->members.size());
  for (const auto& [token, number] : vocabulary->members) {
    const bool fits = number.kind == JsonValue::Kind::integer && number.integer >= 0 &&
                      number.integer < kMostTokens;
    if (!fits) {
      return reader.fail("vocab", fmt::format("\"{}\" has no number from 0 on", shown(token)));
    }
    vocabulary_.emplace(token, static_cast<std::uint32_t>(number.integer));
    vocab_size_ = std::max(vocab_size_, number.integer + 1);
  }
}

void Bpe::read_merges(ObjectReader& reader) {
  const JsonValue* const merges = reader.array("merges");
  if (merges == nullptr) return;
  merges_.reserve(merges->elements.size());
  for (std::size_t i = 0; i < merges->elements.size(); ++i) {
    const auto pair = tokens_of(merges->elements[i]);
    if (!pair) return reader.fail("merges", fmt::format("number {} is no pair of tokens", i));
    const auto left = find(pair->first);
    const auto right = find(pair->second);
    const auto made = find(pair->first + pair->second);
    if (!left || !right || !made) {
      return reader.fail(
          "merges",
          fmt::format("number {} makes \"{}\" of \"{}\" and \"{}\", not all of them tokens", i,
                      shown(pair->first + pair->second), shown(pair->first), shown(pair->second)));
    }
    merges_[pair_of(*left, *right)] = {static_cast<std::uint32_t>(i), *made};
  }
}

/// What becomes of characters that are no token.
void Bpe::read_fallback(ObjectReader& reader, bool byte_level) {
  const std::string unknown = reader.string_or("unk_token", "");
  fuse_unknown_ = reader.boolean_or("fuse_unk", false);
  const bool bytes = reader.boolean_or("byte_fallback", false);
  if (!reader.ok()) return;
  if (!unknown.empty()) {
    unknown_ = find(unknown);
    if (!unknown_) reader.fail("unk_token", "is no token of the vocabulary");
  }
  for (unsigned byte = 0; byte < 256 && bytes; ++byte) {
    const std::string name = fmt::format("<0x{:02X}>", byte);
    const auto token = find(name);
    if (!token) return reader.fail("byte_fallback", "there is no token " + name);
    byte_tokens_.push_back(*token);
  }
  if (bytes || unknown_) return;
  if (!byte_level) {
    return reader.fail("unk_token", "characters that are no token would be lost",
                       "have an unk_token, byte_fallback or a ByteLevel pre_tokenizer");
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string& name = byte_character(static_cast<unsigned char>(byte));
    if (!find(name)) {
      return reader.fail("vocab",
                         fmt::format("has no \"{}\", the character of byte {}", shown(name), byte));
    }
  }
}

Bpe Bpe::read(const JsonValue& value, const std::string& file, const std::string& path,
              bool byte_level, Diagnostics& problems) {
  Bpe bpe;
  ObjectReader reader(value, file, path, problems);
  reader.choice_or("type", 0, {"BPE"});
  if (!reader.ok()) return bpe;
  if (reader.number_or("dropout", 0, 0, 1) != 0) {
    reader.fail("dropout", "merges are never left out", "null is");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!reader.string_or(key, "").empty()) reader.fail(key, "words have none here", "null is");
  }
  bpe.ignore_merges_ = reader.boolean_or("ignore_merges", false);
  bpe.read_vocabulary(reader);
  bpe.read_merges(reader);
  bpe.read_fallback(reader, byte_level);
  reader.reject_unknown();
  return bpe;
}

}  // namespace shardwise::exec
