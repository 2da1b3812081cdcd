#include "executor/storage/safetensors_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/json/regular_file.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

/// What an index says: the file of every tensor.
using WeightMap = std::map<std::string, std::string>;

Result<WeightMap> read_index(const fs::path& path) {
  const Result<std::string> text = read_regular_file(path);
  if (!text) return text.problems();
  const Result<JsonValue> root = parse_json(*text, path.string());
  if (!root) return root.problems();
  Diagnostics problems;
  ObjectReader reader(*root, path.string(), "", problems);
  WeightMap files;
  if (const JsonValue* const map = reader.object("weight_map")) {
    ObjectReader names = reader.nested("weight_map", *map);
    for (const JsonMember& member : map->members) {
      const std::string file = names.string(member.key);
      if (names.ok() && (file.empty() || fs::path(file).filename() != file || file == "..")) {
        names.fail(member.key, fmt::format("{} is not a file beside the index", file));
      }
      files[member.key] = file;
    }
  }
  if (!problems.empty()) return problems;
  return files;
}

/// The file or index that a path stands for.
fs::path entry_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  return fs::exists(path / kIndex, ignored) ? path / kIndex : path / kSingle;
}

}  // namespace

Result<SafetensorsSet> SafetensorsSet::open(const fs::path& path) {
  const fs::path entry = entry_of(path);
  SafetensorsSet set;
  WeightMap map;
  std::vector<std::string> names;
  if (entry.extension() == ".json") {
    Result<WeightMap> index = read_index(entry);
    if (!index) return index.problems();
    map = *std::move(index);
    for (const auto& [tensor, file] : map) names.push_back(file);
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
  } else {
    names.push_back(entry.filename().string());
  }
  Diagnostics problems;
  for (const std::string& name : names) {
    Result<SafetensorsFile> file = SafetensorsFile::open(entry.parent_path() / name);
    if (!file) {
      problems.insert(problems.end(), file.problems().begin(), file.problems().end());
      continue;
    }
    set.files_.push_back(*std::move(file));
  }
  if (!problems.empty()) return problems;
  const auto fail = [&](const std::string& file, const std::string& tensor, std::string message) {
    problems.push_back({file, 0, 0, json_pointer("", tensor), std::move(message), ""});
  };
  for (std::size_t f = 0; f < set.files_.size(); ++f) {
    const SafetensorsFile& file = set.files_[f];
    for (const StoredTensor& tensor : file.tensors()) {
      const auto listed = map.find(tensor.spec.name);
      if (entry.extension() == ".json" && (listed == map.end() || listed->second != names[f])) {
        fail(file.name(), tensor.spec.name, fmt::format("is not there by {}", entry.string()));
        continue;
      }
      set.places_[tensor.spec.name] = {f, &tensor};
    }
  }
  for (const auto& [tensor, file] : map) {
    if (set.places_.contains(tensor)) continue;
    fail((entry.parent_path() / file).string(), tensor,
         fmt::format("is missing, {} has it here", entry.string()));
  }
  if (!problems.empty()) return problems;
  return set;
}

const SafetensorsSet::Place* SafetensorsSet::find(const std::string& tensor) const {
  const auto found = places_.find(tensor);
  return found == places_.end() ? nullptr : &found->second;
}

SafetensorsSetWriter::SafetensorsSetWriter(fs::path folder, std::vector<TensorSpec> tensors,
                                           std::int64_t most_bytes, StoredMetadata metadata)
    : folder_(std::move(folder)), tensors_(std::move(tensors)), metadata_(std::move(metadata)) {
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const std::int64_t bytes = tensors_[t].bytes();
    if (parts_.empty() || parts_.back().left + bytes > most_bytes) parts_.push_back({t, t, 0});
    parts_.back().end = t + 1;
    parts_.back().left += bytes;
  }
  if (parts_.empty()) parts_.emplace_back();
  open_part();
}

std::string SafetensorsSetWriter::file_name(std::size_t part) const {
  if (parts_.size() == 1) return kSingle;
  return fmt::format("model-{:05}-of-{:05}.safetensors", part + 1, parts_.size());
}

void SafetensorsSetWriter::open_part() {
  const Part& part = parts_[part_];
  const auto first = tensors_.begin();
  writer_ = std::make_unique<SafetensorsWriter>(
      folder_ / file_name(part_),
      std::vector<TensorSpec>(first + static_cast<std::ptrdiff_t>(part.begin),
                              first + static_cast<std::ptrdiff_t>(part.end)),
      metadata_);
}

void SafetensorsSetWriter::close_part() {
  writer_->finish();
  writer_.reset();
  if (++part_ < parts_.size()) open_part();
}

void SafetensorsSetWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    SHARDWISE_CHECK(part_ < parts_.size(), "more bytes than the tensors have");
    Part& part = parts_[part_];
    const std::int64_t count = std::min(part.left, static_cast<std::int64_t>(bytes.size()));
    writer_->write(bytes.first(static_cast<std::size_t>(count)));
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    part.left -= count;
    if (part.left == 0 && part_ + 1 < parts_.size()) close_part();
  }
}

void SafetensorsSetWriter::finish() {
  while (part_ < parts_.size()) close_part();
  if (parts_.size() > 1) return write_index();
  // An index of files that were here before would be read instead.
  std::error_code ignored;
  fs::remove(folder_ / kIndex, ignored);
}

void SafetensorsSetWriter::write_index() const {
  std::int64_t bytes = 0;
  for (const TensorSpec& tensor : tensors_) bytes += tensor.bytes();
  JsonWriter json;
  json.begin_object();
  json.begin_object("metadata");
  json.member("total_size", bytes);
  json.end_object();
  json.begin_object("weight_map");
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    for (std::size_t t = parts_[p].begin; t < parts_[p].end; ++t) {
      json.member(tensors_[t].name, file_name(p));
    }
  }
  json.end_object();
  json.end_object();
  DurableFile file(folder_ / kIndex);
  file.write(json.text());
  file.finish();
}

}  // namespace shardwise::exec
