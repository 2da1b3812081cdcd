#pragma once

#include <optional>
#include <string>

#include "planner/spec/json/catalogue.h"

namespace shardwise {

// configs/model_sources.json says where each entry of configs/models was published, and which other
// repositories have models of the same sizes: mirrors and tuned variants.

/// Where `entry` was published: a repository on Hugging Face or a paper; empty when not known.
std::string source_of(const CatalogueFile& entry);

/// The catalogue entry that was published in a repository on Hugging Face, or whose mirror or tuned
/// variant was: "llama-3.1-8b" for "meta-llama/Llama-3.1-8B", in any case of letters. Nothing for
/// other words.
std::optional<std::string> entry_published_as(const std::string& repository);

}  // namespace shardwise
