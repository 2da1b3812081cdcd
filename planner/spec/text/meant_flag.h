#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

/// A flag as typed without its dashes, value and section, in our spelling:
/// "--training.seq_len=8192" is "seq-len".
std::string bare_flag(std::string_view typed);

/// Flags that somebody who typed the unknown `typed` may have meant, as they are typed, best
/// first: "--sequence-length", "--precision bf16". At most three; empty when nothing is near.
///
/// Looked for in this order: the flag in another spelling, its name in another program, the flags
/// that begin with it, one letter or two typed wrong, the flags that have its words.
///
/// \param known     flags of the program or verb, each with its dashes
/// \param switches  those of `known` that take no value, or true and false
std::vector<std::string> meant_flags(std::string_view typed, const std::vector<std::string>& known,
                                     const std::vector<std::string>& switches = {});

}  // namespace shardwise
