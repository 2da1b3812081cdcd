#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

/// Whether `word` names `model` or a variant with the same architecture: "google/gemma-3-27b-it"
/// and "Gemma-3-27B" name gemma-3-27b. Variants end in "-it", "-Instruct", "-chat", "-base", "-hf"
/// …
bool names_model(std::string_view word, std::string_view model);

/// Models of the catalogue that `word` may have meant, at most four, best first: the one of which
/// it names a variant, else names of the same family and generation. A model of another generation
/// is another architecture and no advice: nothing is near "llama-4-scout" but another Llama 4.
std::vector<std::string> near_models(std::string_view word, const std::vector<std::string>& known);

}  // namespace shardwise
