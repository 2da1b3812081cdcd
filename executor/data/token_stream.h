#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/data/mapped_file.h"

namespace shardwise::exec {

/// Form in which a token's number is stored, little endian. Bytes of a text are uint8.
enum class TokenType : std::uint8_t { uint8, int8, int16, uint16, int32, uint32, int64 };

std::int64_t bytes_of(TokenType type);

/// A position of a stream and the number that is there.
struct TokenAt {
  std::int64_t position = 0;
  std::int64_t token = 0;
};

/// The numbers of a corpus, one after the other: of a mapped file, or of a text that was encoded.
/// Copies share the memory. Reading is safe from several threads.
class TokenStream {
 public:
  /// \param first_byte  of the file, where the tokens begin
  /// \pre   the file has that many
  TokenStream(MappedFile file, std::int64_t first_byte, TokenType type, std::int64_t tokens);
  explicit TokenStream(std::vector<std::uint32_t> tokens);
  /// The bytes of a text.
  explicit TokenStream(std::string text);

  std::int64_t tokens() const { return tokens_; }
  /// Tokens first, first + 1, … \pre the stream has them
  void read(std::int64_t first, std::span<std::int64_t> out) const;
  /// The first of the tokens [0, count) that is none of 0 to vocab_size - 1.
  std::optional<TokenAt> first_outside(std::int64_t vocab_size, std::int64_t count) const;

 private:
  std::shared_ptr<const void> memory_;  // keeps `data_`
  const std::byte* data_ = nullptr;
  TokenType type_ = TokenType::uint8;
  std::int64_t tokens_ = 0;
};

}  // namespace shardwise::exec
