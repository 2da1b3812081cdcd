#pragma once

#include <cstdint>
#include <string>

#include "executor/data/token_stream.h"

namespace shardwise::exec {

/// Identity of the tokens that a step reads: two runs of equal identities and seeds read the same
/// sequences. It says what the tokens are, not where they come from: a text with its tokenizer and
/// a file of the tokens that it makes are the same data.
struct DataIdentity {
  std::string source;       // as the user named it, for people
  std::string tokenizer;    // digest of the tokenizer.json; empty without one
  std::int64_t tokens = 0;  // of the stream
  std::string digest;       // of the tokens
  std::int64_t sequence_length = 0;
  std::int64_t global_batch_size = 0;  // sequences a step
};

/// SHA-256 of a stream's tokens as uint32: of all of 2^21 or fewer, else of 512 blocks of 4,096,
/// the first, the last and those between at equal distances. A longer file that was altered
/// elsewhere and has as many tokens as before passes for the same.
std::string token_digest(const TokenStream& stream);

}  // namespace shardwise::exec
