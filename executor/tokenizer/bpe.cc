#include "executor/tokenizer/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

namespace shardwise::exec {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// Bytes of the UTF-8 character that begins with `first`.
std::size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// A place of the list where two neighbours may become one.
struct Candidate {
  std::uint32_t rank = 0;
  std::size_t at = 0;
  std::uint64_t pair = 0;  // that were there when it was found
  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

}  // namespace

std::optional<std::uint32_t> Bpe::find(const std::string& token) const {
  const auto found = vocabulary_.find(token);
  if (found == vocabulary_.end()) return std::nullopt;
  return found->second;
}

void Bpe::add_characters(std::string_view piece, std::vector<std::uint32_t>& symbols) const {
  bool unknown_before = false;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t bytes = std::min(character_bytes(piece[at]), piece.size() - at);
    const std::string_view character = piece.substr(at, bytes);
    at += bytes;
    const std::optional<std::uint32_t> token = find(std::string(character));
    if (token) {
      symbols.push_back(*token);
    } else if (!byte_tokens_.empty()) {
      for (const char c : character) symbols.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
    } else if (unknown_ && !(fuse_unknown_ && unknown_before)) {
      symbols.push_back(*unknown_);
    }
    unknown_before = !token && byte_tokens_.empty();
  }
}

/// A list of symbols linked both ways, and candidates in the order of merging. A candidate whose
/// symbols have changed meanwhile is passed over.
void Bpe::merge_all(std::vector<std::uint32_t>& symbols) const {
  const std::size_t count = symbols.size();
  std::vector<std::size_t> before(count);
  std::vector<std::size_t> after(count);
  for (std::size_t i = 0; i < count; ++i) {
    before[i] = i == 0 ? kNone : i - 1;
    after[i] = i + 1 == count ? kNone : i + 1;
  }
  std::vector<bool> gone(count);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](std::size_t at) {
    if (at == kNone || after[at] == kNone) return;
    const std::uint64_t pair = pair_of(symbols[at], symbols[after[at]]);
    const auto merge = merges_.find(pair);
    if (merge != merges_.end()) candidates.push({merge->second.rank, at, pair});
  };
  for (std::size_t i = 0; i < count; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate next = candidates.top();
    candidates.pop();
    const std::size_t at = next.at;
    if (gone[at] || after[at] == kNone) continue;
    if (pair_of(symbols[at], symbols[after[at]]) != next.pair) continue;
    const std::size_t right = after[at];
    symbols[at] = merges_.at(next.pair).token;
    gone[right] = true;
    after[at] = after[right];
    if (after[at] != kNone) before[after[at]] = at;
    consider(before[at]);
    consider(at);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!gone[i]) symbols[kept++] = symbols[i];
  }
  symbols.resize(kept);
}

void Bpe::encode(std::string_view piece, std::vector<std::uint32_t>& tokens) const {
  if (ignore_merges_) {
    if (const auto whole = find(std::string(piece))) return tokens.push_back(*whole);
  }
  std::vector<std::uint32_t> symbols;
  add_characters(piece, symbols);
  merge_all(symbols);
  tokens.insert(tokens.end(), symbols.begin(), symbols.end());
}

}  // namespace shardwise::exec
