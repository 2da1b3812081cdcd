#pragma once

#include <string>

namespace shardwise {

/// Sentence of nlohmann's parser on a text that is not JSON, in our words:
/// "[…] parse error at line 1, column 8: syntax error while parsing object key - unexpected '}';
/// expected string literal" is "not JSON while parsing object key: unexpected '}', expected string
/// literal". What it has read of the token is left out.
std::string json_problem(const std::string& what);

}  // namespace shardwise
