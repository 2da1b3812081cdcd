#include "executor/data/byte_text.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <numeric>
#include <utility>

#include "executor/data/random.h"
#include "planner/spec/check.h"

namespace shardwise::exec {
namespace {

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

}  // namespace

ByteText::ByteText(std::string text, std::int64_t sequence, std::uint64_t seed)
    : text_(std::move(text)),
      sequence_(sequence),
      windows_((std::ssize(text_) - 1) / sequence),
      seed_(seed) {
  SHARDWISE_CHECK(windows_ > 0, fmt::format("{} bytes", text_.size()));
}

Result<ByteText> ByteText::read(const std::filesystem::path& path, std::int64_t sequence,
                                std::uint64_t seed) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.is_open() || in.bad()) {
    return Diagnostic{path.string(), 0, 0, "--data", "cannot be read", "name a text file"};
  }
  if (std::ssize(text) <= sequence) {
    return Diagnostic{
        path.string(),
        0,
        0,
        "--data",
        fmt::format("{} bytes are no sequence of {} tokens and one more", text.size(), sequence),
        "take a longer text or a shorter sequence_length"};
  }
  return ByteText(std::move(text), sequence, seed);
}

/// An epoch meets window start, start + stride, …: a stride that shares no divisor with the number
/// of windows meets each once.
std::int64_t ByteText::window(std::int64_t number) const {
  const std::int64_t epoch = number / windows_;
  const std::uint64_t draw = seed_of(seed_, "sequences");
  const auto counter = static_cast<std::uint64_t>(2 * epoch);
  const auto modulus = static_cast<std::uint64_t>(windows_);
  const auto start = static_cast<std::int64_t>(random_bits(draw, counter) % modulus);
  auto stride = static_cast<std::int64_t>(random_bits(draw, counter + 1) % modulus);
  while (std::gcd(stride, windows_) != 1) stride = (stride + 1) % windows_;
  return (start + product_modulo(stride, number % windows_, windows_)) % windows_;
}

void ByteText::sequence(std::int64_t number, std::span<std::int64_t> inputs,
                        std::span<std::int64_t> targets) const {
  const auto first = static_cast<std::size_t>(window(number) * sequence_);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = static_cast<unsigned char>(text_[first + i]);
    targets[i] = static_cast<unsigned char>(text_[first + i + 1]);
  }
}

}  // namespace shardwise::exec
