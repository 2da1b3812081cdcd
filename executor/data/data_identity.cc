#include "executor/data/data_identity.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "planner/spec/text/sha256.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kBlock = 4096;
constexpr std::int64_t kBlocks = 512;

void add_block(const TokenStream& stream, std::int64_t first, std::int64_t count,
               std::string& bytes) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(count));
  stream.read(first, tokens);
  for (const std::int64_t token : tokens) {
    const auto number = static_cast<std::uint32_t>(token);
    std::array<char, sizeof number> four{};
    std::memcpy(four.data(), &number, sizeof number);
    bytes.append(four.data(), four.size());
  }
}

}  // namespace

std::string token_digest(const TokenStream& stream) {
  const std::int64_t all = stream.tokens();
  std::string bytes;
  if (all <= kBlock * kBlocks) {
    for (std::int64_t at = 0; at < all; at += kBlock) {
      add_block(stream, at, std::min(kBlock, all - at), bytes);
    }
    return sha256(bytes);
  }
  const std::int64_t last = all - kBlock;
  for (std::int64_t block = 0; block < kBlocks; ++block) {
    // The quotient first: a position times the number of blocks may not fit.
    const std::int64_t step = last / (kBlocks - 1);
    add_block(stream, block + 1 == kBlocks ? last : block * step, kBlock, bytes);
  }
  return sha256(bytes);
}

}  // namespace shardwise::exec
