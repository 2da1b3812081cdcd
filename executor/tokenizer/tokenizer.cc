#include "executor/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/json/regular_file.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

// A vocabulary of 200,000 tokens has 450,000 merges of three values each (o200k); 4,000,000 take
// half a GB while they are read.
constexpr std::size_t kMostValues = 4'000'000;
constexpr std::size_t kMostKnown = std::size_t{1} << 17;  // pieces
constexpr std::size_t kLongestKnown = 64;                 // bytes

}  // namespace

Result<Tokenizer> Tokenizer::read(const std::filesystem::path& path) {
  const Result<std::string> text = read_regular_file(path);
  if (!text) return text.problems();
  const Result<JsonValue> json = parse_json(*text, path.string(), kMostValues);
  if (!json) return json.problems();
  return from_json(*json, path.string());
}

Result<Tokenizer> Tokenizer::from_json(const JsonValue& json, const std::string& file) {
  Diagnostics problems;
  ObjectReader reader(json, file, "", problems);
  reader.string_or("version", "1.0");
  for (const char* key : {"truncation", "padding", "post_processor", "decoder"}) reader.has(key);
  const JsonValue* const normalizer = reader.object("normalizer", false);
  const JsonValue* const pre_tokenizer = reader.object("pre_tokenizer", false);
  const JsonValue* const added = reader.array("added_tokens", false);
  const JsonValue* const model = reader.object("model");
  reader.reject_unknown();
  Tokenizer made;
  if (normalizer != nullptr) {
    made.normalizer_ = Normalizer::read(*normalizer, file, "/normalizer", problems);
  }
  if (pre_tokenizer != nullptr) {
    made.pre_tokenizer_ = PreTokenizer::read(*pre_tokenizer, file, "/pre_tokenizer", problems);
  }
  if (added != nullptr) {
    made.added_ = AddedTokens::read(*added, file, made.normalizer_, problems);
  }
  if (model != nullptr) {
    made.bpe_ = Bpe::read(*model, file, "/model", made.pre_tokenizer_.byte_level(), problems);
  }
  if (!problems.empty()) return problems;
  return made;
}

std::int64_t Tokenizer::vocab_size() const {
  return std::max(bpe_.vocab_size(), added_.vocab_size());
}

void Tokenizer::encode_piece(std::string_view piece, Known& known,
                             std::vector<std::uint32_t>& tokens) const {
  if (piece.size() > kLongestKnown) return bpe_.encode(piece, tokens);
  const std::string key(piece);
  auto found = known.find(key);
  if (found == known.end()) {
    if (known.size() == kMostKnown) known.clear();
    found = known.emplace(key, std::vector<std::uint32_t>()).first;
    bpe_.encode(piece, found->second);
  }
  tokens.insert(tokens.end(), found->second.begin(), found->second.end());
}

void Tokenizer::encode_section(std::string_view section, bool at_start, Known& known,
                               std::vector<std::uint32_t>& tokens) const {
  const std::string text = normalizer_.apply(section);
  added_.split_normalized(text, [&](std::string_view part, std::optional<std::uint32_t> token) {
    if (token) return tokens.push_back(*token);
    pre_tokenizer_.split(part, at_start && part.data() == text.data(),
                         [&](std::string_view piece) { encode_piece(piece, known, tokens); });
  });
}

Result<std::vector<std::uint32_t>> Tokenizer::encode(std::string_view text) const {
  const std::size_t bad = first_not_utf8(text);
  if (bad < text.size()) {
    return Diagnostic{"",
                      0,
                      0,
                      "",
                      fmt::format("byte {} is not UTF-8", bad),
                      "a tokenizer reads UTF-8; bytes are tokens without one"};
  }
  std::vector<std::uint32_t> tokens;
  Known known;
  try {
    added_.split_raw(text, [&](std::string_view part, std::optional<std::uint32_t> token) {
      if (token) return tokens.push_back(*token);
      encode_section(part, part.data() == text.data(), known, tokens);
    });
  } catch (const IoError& gave_up) {
    return Diagnostic{"", 0, 0, "", gave_up.what(), ""};
  }
  return tokens;
}

}  // namespace shardwise::exec
