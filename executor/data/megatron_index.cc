#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>

#include "executor/data/token_files.h"

namespace shardwise::exec {
namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::int64_t kHeader = 9 + 8 + 1 + 8 + 8;  // bytes
constexpr std::int64_t kMostIndexed = std::int64_t{1} << 56;

// Codes 6 and 7 are float64 and float32, which hold no tokens.
std::optional<TokenType> type_of(int code) {
  constexpr std::array<TokenType, 5> kIntegers = {
      TokenType::uint8, TokenType::int8, TokenType::int16, TokenType::int32, TokenType::int64};
  if (code >= 1 && code <= 5) return kIntegers[static_cast<std::size_t>(code - 1)];
  if (code == 8) return TokenType::uint16;
  return std::nullopt;
}

/// Numbers of a file, one after the other, which need not lie at multiples of their size.
class Numbers {
 public:
  explicit Numbers(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T at(std::int64_t offset, std::int64_t index = 0) const {
    T value;
    std::memcpy(&value, bytes_.data() + offset + index * static_cast<std::int64_t>(sizeof(T)),
                sizeof(T));
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

/// Sums the lengths of sequences, which must follow each other without a gap.
Result<std::int64_t> total_tokens(const Numbers& numbers, const MegatronIndex& index,
                                  const std::string& file) {
  const std::int64_t pointers = kHeader + 4 * index.sequences;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < index.sequences; ++i) {
    const auto length = numbers.at<std::int32_t>(kHeader, i);
    const auto begin = numbers.at<std::int64_t>(pointers, i);
    if (length < 0) {
      return Diagnostic{file, 0, 0, "--data", fmt::format("sequence {} has {} tokens", i, length),
                        ""};
    }
    if (begin != sum * bytes_of(index.type)) {
      return Diagnostic{file,
                        0,
                        0,
                        "--data",
                        fmt::format("sequence {} begins at byte {}, the one before ends at {}", i,
                                    begin, sum * bytes_of(index.type)),
                        "sequences that follow each other are read, as Megatron-LM writes them"};
    }
    sum += length;
  }
  return sum;
}

/// Documents begin at sequence 0 and one after the other; the last number is the end of all.
std::optional<std::string> wrong_documents(const Numbers& numbers, const MegatronIndex& index,
                                           std::int64_t boundaries) {
  const std::int64_t offset = kHeader + 12 * index.sequences;
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < boundaries; ++i) {
    const auto at = numbers.at<std::int64_t>(offset, i);
    if (at < before || at > index.sequences || (i == 0 && at != 0)) {
      return fmt::format("document {} begins at sequence {} of {}", i, at, index.sequences);
    }
    before = at;
  }
  if (before != index.sequences) {
    return fmt::format("documents end at sequence {} of {}", before, index.sequences);
  }
  return std::nullopt;
}

}  // namespace

Result<MegatronIndex> read_megatron_index(std::span<const std::byte> bytes,
                                          const std::string& file) {
  const auto problem = [&](std::string message, std::string hint = {}) {
    return Diagnostic{file, 0, 0, "--data", std::move(message), std::move(hint)};
  };
  const std::int64_t size = std::ssize(bytes);
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()),
                               std::min(bytes.size(), kMagic.size()));
  if (begin != kMagic) {
    return problem("does not begin with MMIDIDX, so it is not an index of Megatron-LM");
  }
  if (size < kHeader) return problem(fmt::format("{} bytes, its header has {}", size, kHeader));
  const Numbers numbers(bytes);
  const auto version = numbers.at<std::uint64_t>(9);
  if (version != 1) return problem(fmt::format("version {}, 1 is read", version));
  const int code = numbers.at<std::uint8_t>(17);
  const std::optional<TokenType> type = type_of(code);
  if (!type) {
    return problem(fmt::format("type {} holds no tokens", code),
                   "1 to 5 and 8 do: integers of 1 to 8 bytes");
  }
  MegatronIndex index;
  index.type = *type;
  index.sequences = numbers.at<std::int64_t>(18);
  const auto boundaries = numbers.at<std::int64_t>(26);
  const bool sane = index.sequences >= 0 && boundaries >= 1 && index.sequences < kMostIndexed &&
                    boundaries < kMostIndexed;
  const std::int64_t expected = sane ? kHeader + 12 * index.sequences + 8 * boundaries : 0;
  // After the documents there may be a byte for each sequence, the mode of multimodal data.
  if (!sane || (size != expected && size != expected + index.sequences)) {
    return problem(fmt::format("{} bytes do not hold {} sequences and {} boundaries of documents",
                               size, index.sequences, boundaries),
                   "the file is truncated");
  }
  index.documents = boundaries - 1;
  if (const auto wrong = wrong_documents(numbers, index, boundaries)) return problem(*wrong);
  const Result<std::int64_t> tokens = total_tokens(numbers, index, file);
  if (!tokens) return tokens.problems();
  index.tokens = *tokens;
  return index;
}

}  // namespace shardwise::exec
