#include "executor/data/token_stream.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are read as they lie");

/// Calls `visit` with a number of the type that a TokenType names.
template <class Visit>
auto with_type(TokenType type, Visit visit) {
  switch (type) {
    case TokenType::uint8:
      return visit(std::uint8_t{});
    case TokenType::int8:
      return visit(std::int8_t{});
    case TokenType::int16:
      return visit(std::int16_t{});
    case TokenType::uint16:
      return visit(std::uint16_t{});
    case TokenType::int32:
      return visit(std::int32_t{});
    case TokenType::uint32:
      return visit(std::uint32_t{});
    case TokenType::int64:
      return visit(std::int64_t{});
  }
  SHARDWISE_CHECK(false, "a type of tokens");
}

template <class T>
std::int64_t token_at(const std::byte* data, std::int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::int64_t bytes_of(TokenType type) {
  return with_type(type, [](auto number) { return static_cast<std::int64_t>(sizeof number); });
}

TokenStream::TokenStream(MappedFile file, std::int64_t first_byte, TokenType type,
                         std::int64_t tokens)
    : type_(type), tokens_(tokens) {
  const auto kept = std::make_shared<const MappedFile>(std::move(file));
  SHARDWISE_CHECK(first_byte + tokens * bytes_of(type) <= std::ssize(kept->bytes()),
                  fmt::format("{} tokens", tokens));
  data_ = kept->bytes().data() + first_byte;
  memory_ = kept;
}

TokenStream::TokenStream(std::vector<std::uint32_t> tokens)
    : type_(TokenType::uint32), tokens_(std::ssize(tokens)) {
  const auto kept = std::make_shared<const std::vector<std::uint32_t>>(std::move(tokens));
  data_ = std::as_bytes(std::span(*kept)).data();
  memory_ = kept;
}

TokenStream::TokenStream(std::string text) : tokens_(std::ssize(text)) {
  const auto kept = std::make_shared<const std::string>(std::move(text));
  data_ = std::as_bytes(std::span(*kept)).data();
  memory_ = kept;
}

void TokenStream::read(std::int64_t first, std::span<std::int64_t> out) const {
  SHARDWISE_CHECK(first >= 0 && first + std::ssize(out) <= tokens_, fmt::format("at {}", first));
  with_type(type_, [&](auto number) {
    const std::byte* const data = data_ + first * static_cast<std::int64_t>(sizeof number);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = token_at<decltype(number)>(data, static_cast<std::int64_t>(i));
    }
  });
}

std::optional<TokenAt> TokenStream::first_outside(std::int64_t vocab_size,
                                                  std::int64_t count) const {
  return with_type(type_, [&](auto number) -> std::optional<TokenAt> {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t token = token_at<decltype(number)>(data_, i);
      if (token < 0 || token >= vocab_size) return TokenAt{i, token};
    }
    return std::nullopt;
  });
}

}  // namespace shardwise::exec
