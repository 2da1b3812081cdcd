#include "executor/data/token_files.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLlmcHeader = std::int64_t{256} * 4;  // bytes
struct LlmcKind {
  std::int32_t magic;
  std::int32_t version;
  TokenType type;
};
constexpr LlmcKind kLlmcKinds[] = {{20240520, 1, TokenType::uint16},
                                   {20240801, 7, TokenType::uint32}};

Diagnostic file_problem(const std::string& file, std::string message, std::string hint = {}) {
  return {file, 0, 0, "--data", std::move(message), std::move(hint)};
}

std::int32_t int32_at(std::span<const std::byte> bytes, std::size_t index) {
  std::int32_t value = 0;
  std::memcpy(&value, bytes.data() + 4 * index, sizeof value);
  return value;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool begins_as_llmc(std::span<const std::byte> bytes) {
  if (std::ssize(bytes) < kLlmcHeader) return false;
  for (const LlmcKind& kind : kLlmcKinds) {
    if (int32_at(bytes, 0) == kind.magic && int32_at(bytes, 1) == kind.version) return true;
  }
  return false;
}

/// The common beginning of PATH.bin and PATH.idx.
std::string megatron_stem(const std::string& path) {
  const bool named = path.ends_with(".idx") || path.ends_with(".bin");
  return named ? path.substr(0, path.size() - 4) : path;
}

Result<TokenStream> whole(MappedFile file, TokenType type, const std::string& path) {
  const std::int64_t bytes = std::ssize(file.bytes());
  const std::int64_t tokens = bytes / bytes_of(type);
  if (bytes % bytes_of(type) != 0) {
    return file_problem(path, fmt::format("{} bytes are no whole number of uint16 tokens", bytes),
                        "the file is truncated, or --data-format is another");
  }
  return TokenStream(std::move(file), 0, type, tokens);
}

Result<TokenStream> open_llmc(MappedFile file, const std::string& path) {
  const std::int64_t bytes = std::ssize(file.bytes());
  if (bytes < kLlmcHeader) {
    return file_problem(
        path, fmt::format("{} bytes are less than llm.c's header of {}", bytes, kLlmcHeader));
  }
  const std::int32_t magic = int32_at(file.bytes(), 0);
  const std::int32_t version = int32_at(file.bytes(), 1);
  const std::int64_t tokens = int32_at(file.bytes(), 2);
  for (const LlmcKind& kind : kLlmcKinds) {
    if (kind.magic != magic) continue;
    if (kind.version != version) {
      return file_problem(path, fmt::format("version {} of llm.c's token files, {} is read",
                                            version, kind.version));
    }
    const std::int64_t there = (bytes - kLlmcHeader) / bytes_of(kind.type);
    if (tokens < 0 || kLlmcHeader + tokens * bytes_of(kind.type) != bytes) {
      return file_problem(
          path, fmt::format("its header states {} tokens, the file has {}", tokens, there),
          "the file is truncated, or joined with another");
    }
    return TokenStream(std::move(file), kLlmcHeader, kind.type, tokens);
  }
  return file_problem(path, fmt::format("{} is not a magic number of llm.c's token files", magic),
                      "20240520 (uint16) and 20240801 (uint32) are");
}

Result<TokenStream> open_megatron(const std::string& path) {
  const std::string stem = megatron_stem(path);
  Result<MappedFile> index_file = MappedFile::open(stem + ".idx", "--data");
  if (!index_file) return index_file.problems();
  const Result<MegatronIndex> index = read_megatron_index(index_file->bytes(), stem + ".idx");
  if (!index) return index.problems();
  Result<MappedFile> file = MappedFile::open(stem + ".bin", "--data");
  if (!file) return file.problems();
  const std::int64_t expected = index->tokens * bytes_of(index->type);
  if (std::ssize(file->bytes()) != expected) {
    return file_problem(
        stem + ".bin",
        fmt::format("{} bytes, its index has {}", std::ssize(file->bytes()), expected),
        "the file is truncated, or the index is another file's");
  }
  return TokenStream(*std::move(file), 0, index->type, index->tokens);
}

}  // namespace

DataFormat detected_format(const std::string& path) {
  const std::string stem = megatron_stem(path);
  const bool pair = is_file(stem + ".idx") && is_file(stem + ".bin");
  if (path.ends_with(".idx") || (pair && (path.ends_with(".bin") || !is_file(path)))) {
    return DataFormat::megatron;
  }
  const Result<MappedFile> file = MappedFile::open(path, "--data");
  if (file && begins_as_llmc(file->bytes())) return DataFormat::llmc;
  return path.ends_with(".bin") ? DataFormat::nanogpt : DataFormat::text;
}

Result<TokenStream> open_tokens(const std::string& path, DataFormat format) {
  if (format == DataFormat::detect) format = detected_format(path);
  if (format == DataFormat::megatron) return open_megatron(path);
  Result<MappedFile> file = MappedFile::open(path, "--data");
  if (!file) return file.problems();
  if (file->bytes().empty()) return file_problem(path, "is empty");
  if (format == DataFormat::llmc) return open_llmc(*std::move(file), path);
  if (format == DataFormat::nanogpt) return whole(*std::move(file), TokenType::uint16, path);
  return whole(*std::move(file), TokenType::uint8, path);
}

}  // namespace shardwise::exec
