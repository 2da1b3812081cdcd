#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A file the user named, by path or by catalogue entry.
struct CatalogueFile {
  std::filesystem::path path;
  std::string name;  // "llama-3.1-8b"; for a path the name of the file or of its folder
  bool from_catalogue = false;
  bool exists = true;  // false for a path with no file: reading it says so
};

/// Folders with `models/`, `gpus/`, `clusters/` …, in the order they are searched:
/// $SHARDWISE_CONFIGS when set, the catalogue installed with this program wherever its prefix was
/// moved, unless a stranger may have put it there, the one of the prefix that was configured, the
/// one of the source tree.
std::vector<std::filesystem::path> catalogue_folders();

/// Problems of $SHARDWISE_CONFIGS: it names no folder, or one that is no catalogue.
Diagnostics check_catalogue();

/// Finds what `--model`, `--gpu` and `--cluster` take: a path (it has a '/' or ends in ".json"), a
/// folder with a config.json, or the name of a catalogue entry of `kind` ("models"), which is
/// configs/KIND/NAME.json. A catalogue entry goes before a folder or a file of the same name.
/// \returns the file; or a problem: the nearest names, or that a file is there and is no JSON
Result<CatalogueFile> find_in_catalogue(std::string_view kind, const std::string& name_or_path);

/// A name that is neither a file nor an entry of `kind`, with the nearest entries.
Diagnostic unknown_name(std::string_view kind, const std::string& name);

/// Names of all entries of `kind`, sorted.
std::vector<std::string> catalogue_names(std::string_view kind);

}  // namespace shardwise
