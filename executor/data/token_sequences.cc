#include "executor/data/token_sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "executor/data/random.h"
#include "executor/storage/bad_input.h"

namespace shardwise::exec {
namespace {

/// Before the first step: so much of a file as is read in moments, whatever its length.
constexpr std::int64_t kLookedAt = std::int64_t{1} << 26;

/// The factor times a mod b, of numbers below 2^62.
std::int64_t product_modulo(std::int64_t a, std::int64_t b, std::int64_t modulus) {
  std::int64_t sum = 0;
  a %= modulus;
  for (; b > 0; b >>= 1) {
    if ((b & 1) != 0) sum = (sum + a) % modulus;
    a = 2 * a % modulus;
  }
  return sum;
}

Diagnostic outside(const std::string& source, const TokenAt& found, std::int64_t vocab_size) {
  return {source,
          0,
          0,
          "--data",
          fmt::format("token {} at position {} is outside the model's vocabulary of {}",
                      found.token, found.position, vocab_size),
          "tokens are numbers below the plan's vocab_size"};
}

}  // namespace

TokenSequences::TokenSequences(TokenStream stream, std::int64_t sequence_length,
                               std::int64_t vocab_size, std::uint64_t seed, std::string source)
    : stream_(std::move(stream)),
      sequence_length_(sequence_length),
      windows_((stream_.tokens() - 1) / sequence_length),
      vocab_size_(vocab_size),
      seed_(seed),
      source_(std::move(source)) {}

Result<TokenSequences> TokenSequences::cut(TokenStream stream, std::int64_t sequence_length,
                                           std::int64_t vocab_size, std::uint64_t seed,
                                           const std::string& source) {
  if (stream.tokens() <= sequence_length) {
    return Diagnostic{source,
                      0,
                      0,
                      "--data",
                      fmt::format("{} tokens are no sequence of {} and one more", stream.tokens(),
                                  sequence_length),
                      "take more of them or a shorter sequence_length"};
  }
  const auto found = stream.first_outside(vocab_size, std::min(stream.tokens(), kLookedAt));
  if (found) return outside(source, *found, vocab_size);
  return TokenSequences(std::move(stream), sequence_length, vocab_size, seed, source);
}

/// An epoch meets window start, start + stride, …: a stride that shares no divisor with the number
/// of windows meets each once.
std::int64_t TokenSequences::window(std::int64_t number) const {
  const std::int64_t epoch = number / windows_;
  const std::uint64_t draw = seed_of(seed_, "sequences");
  const auto counter = static_cast<std::uint64_t>(2 * epoch);
  const auto modulus = static_cast<std::uint64_t>(windows_);
  const auto start = static_cast<std::int64_t>(random_bits(draw, counter) % modulus);
  auto stride = static_cast<std::int64_t>(random_bits(draw, counter + 1) % modulus);
  while (std::gcd(stride, windows_) != 1) stride = (stride + 1) % windows_;
  return (start + product_modulo(stride, number % windows_, windows_)) % windows_;
}

void TokenSequences::sequence(std::int64_t number, std::span<std::int64_t> inputs,
                              std::span<std::int64_t> targets) const {
  const std::int64_t first = window(number) * sequence_length_;
  stream_.read(first, inputs);
  stream_.read(first + 1, targets);
  const auto bad = [&](std::int64_t token) { return token < 0 || token >= vocab_size_; };
  const auto refuse = [&](std::int64_t at, std::int64_t token) {
    throw BadInput(outside(source_, {at, token}, vocab_size_));
  };
  if (bad(inputs.front())) refuse(first, inputs.front());
  const auto found = std::ranges::find_if(targets, bad);
  if (found != targets.end()) refuse(first + 1 + (found - targets.begin()), *found);
}

}  // namespace shardwise::exec
