#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "executor/data/token_stream.h"

namespace shardwise::exec {

/// Form in which a file holds tokens.
enum class DataFormat : std::uint8_t {
  detect,    // by name and content
  text,      // a token a byte
  nanogpt,   // uint16 numbers and nothing else. Source: nanoGPT, train.py (numpy.memmap, uint16)
  llmc,      // a header of 256 int32 (magic, version, tokens), then uint16 or uint32 numbers.
             // Source: llm.c, dev/data/data_common.py
  megatron,  // PATH.bin has the numbers, PATH.idx their type, sequences and documents.
             // Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py
};
inline constexpr std::array<std::string_view, 5> kDataFormats = {"detect", "text", "nanogpt",
                                                                 "llmc", "megatron"};

/// Format of a path: `.idx`, a `.bin` with an `.idx` beside it and the common beginning of
/// both are Megatron's, a file that begins with llm.c's magic and version is llm.c's, another
/// `.bin` is nanoGPT's, all else is text.
DataFormat detected_format(const std::string& path);

/// Opens a file of tokens. Nothing of it is copied; of Megatron's files the documents are joined.
/// \returns what is wrong with it: not there, empty, of a length that its header or index does not
///          have, of a type that holds no tokens
Result<TokenStream> open_tokens(const std::string& path, DataFormat format);

/// The numbers of a Megatron index.
struct MegatronIndex {
  TokenType type = TokenType::uint16;
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
};
/// Reads an index: magic "MMIDIDX\0\0", version 1 (uint64), type (uint8), numbers of sequences and
/// of document boundaries (uint64 each), lengths of sequences in tokens (int32), where they begin
/// in bytes (int64), at which sequence documents begin (int64), the last of them the end. Refuses
/// sequences with bytes between them: Megatron's writer makes none.
Result<MegatronIndex> read_megatron_index(std::span<const std::byte> bytes,
                                          const std::string& file);

}  // namespace shardwise::exec
