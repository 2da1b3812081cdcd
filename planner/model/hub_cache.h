#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace shardwise {

/// The config.json of a repository in the cache that transformers and `hf download` fill:
/// $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
/// ~/.cache/huggingface/hub, where the last two are absolute. Of several snapshots that of `main`,
/// else the one of the last name. Nothing is fetched. \param repository  "meta-llama/Llama-3.1-8B"
/// Source: huggingface_hub, constants.py and "Understand caching".
std::optional<std::filesystem::path> config_in_hub_cache(const std::string& repository);

}  // namespace shardwise
