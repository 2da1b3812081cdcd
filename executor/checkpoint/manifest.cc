#include "executor/checkpoint/manifest.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <span>

#include "executor/checkpoint/slice_cover.h"
#include "executor/storage/durable_file.h"
#include "executor/storage/file_descriptor.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/json/regular_file.h"

namespace shardwise::exec {
namespace {

constexpr const char* kManifestSchema = "shardwise.checkpoint/1";
// The checksum stands near the beginning of the text, and is made with zeros in its place.
constexpr std::string_view kChecksumKey = "\"crc32\": \"";
constexpr std::string_view kZeros = "00000000";
constexpr std::int64_t kMost = std::int64_t{1} << 60;
// What the text begins with, however long it is.
constexpr std::size_t kHeadBytes = 512;
constexpr std::string_view kSchemaKey = "\"schema\": \"shardwise.checkpoint/";
constexpr std::string_view kRunKey = "\"run\": \"";
constexpr std::string_view kStepKey = "\"step\": ";

std::uint32_t checksum(std::string_view text) {
  return crc32_of(0, std::as_bytes(std::span(text)));
}

/// Where the eight digits of the checksum are; npos when there are none.
std::size_t checksum_place(std::string_view text) {
  const std::size_t key = text.find(kChecksumKey);
  if (key == std::string_view::npos) return key;
  const std::size_t at = key + kChecksumKey.size();
  return at + kZeros.size() <= text.size() ? at : std::string_view::npos;
}

void write_optimizer(JsonWriter& json, const OptimizerRules& rules) {
  json.begin_object("optimizer");
  json.member("name", "adamw");
  json.member("learning_rate", rules.peak_learning_rate);
  json.member("min_learning_rate", rules.least_learning_rate);
  json.member("warmup_steps", rules.warmup_steps);
  json.member("decay_steps", rules.decay_steps);
  json.member("beta1", rules.beta1);
  json.member("beta2", rules.beta2);
  json.member("epsilon", rules.epsilon);
  json.member("weight_decay", rules.weight_decay);
  json.member("clip_norm", rules.clip_norm);
  json.end_object();
}

OptimizerRules read_optimizer(ObjectReader reader) {
  constexpr double kLargest = 1e300;
  OptimizerRules rules;
  reader.choice("name", {"adamw"});
  const auto number = [&](const char* key) { return reader.number(key, 0, kLargest); };
  rules.peak_learning_rate = number("learning_rate");
  rules.least_learning_rate = number("min_learning_rate");
  rules.warmup_steps = reader.integer("warmup_steps", 0, kMost);
  rules.decay_steps = reader.integer("decay_steps", 0, kMost);
  rules.beta1 = number("beta1");
  rules.beta2 = number("beta2");
  rules.epsilon = number("epsilon");
  rules.weight_decay = number("weight_decay");
  rules.clip_norm = number("clip_norm");
  reader.reject_unknown();
  return rules;
}

void write_data(JsonWriter& json, const DataIdentity& data) {
  json.begin_object("data");
  json.member("source", data.source);
  json.member("tokens", data.tokens);
  json.member("tokens_sha256", data.digest);
  json.member("tokenizer_sha256", data.tokenizer);
  json.member("sequence_length", data.sequence_length);
  json.member("global_batch_size", data.global_batch_size);
  json.end_object();
}

DataIdentity read_data(ObjectReader reader) {
  DataIdentity data;
  data.source = reader.string("source");
  data.tokens = reader.integer("tokens", 0, kMost);
  data.digest = reader.string("tokens_sha256");
  data.tokenizer = reader.string("tokenizer_sha256");
  data.sequence_length = reader.integer("sequence_length", 0, kMost);
  data.global_batch_size = reader.integer("global_batch_size", 0, kMost);
  reader.reject_unknown();
  return data;
}

void write_file(JsonWriter& json, const SavedFile& file) {
  json.member("name", file.name);
  json.member("bytes", file.bytes);
  json.member("crc32", file.crc32);
  const auto write = [&](const SavedSlice& slice, std::vector<std::int64_t> row) {
    row.insert(row.end(), {slice.begin, slice.count});
    row.insert(row.end(), slice.crc32.begin(), slice.crc32.end());
    json.row(slice.tensor, row);
  };
  json.begin_object("slices");
  for (const SavedSlice& slice : file.slices) {
    if (slice.part == kWholeTensor) write(slice, {});
  }
  json.end_object();
  const auto is_part = [](const SavedSlice& slice) { return slice.part != kWholeTensor; };
  if (std::ranges::none_of(file.slices, is_part)) return;
  json.begin_object("parts");
  for (const SavedSlice& slice : file.slices) {
    if (is_part(slice)) write(slice, {slice.part});
  }
  json.end_object();
}

/// The whole numbers of an array, of which there are `count`; none after a problem.
std::vector<std::int64_t> read_row(ObjectReader& reader, const std::string& key,
                                   std::size_t count) {
  const JsonValue* const array = reader.array(key);
  if (array == nullptr) return {};
  std::vector<std::int64_t> numbers;
  for (const JsonValue& each : array->elements) {
    const bool fine = each.kind == JsonValue::Kind::integer && each.integer >= 0;
    if (fine && each.integer <= kMost) numbers.push_back(each.integer);
  }
  const bool all = numbers.size() == array->elements.size();
  if (all && (count == 0 || numbers.size() == count)) return numbers;
  reader.fail(key, count == 0 ? "is no list of whole numbers"
                              : fmt::format("is no list of {} whole numbers", count));
  return {};
}

/// \param key  "slices", or "parts", whose rows begin with the number of the part
void read_slices(ObjectReader& reader, const char* key, SavedFile& file) {
  const bool parts = std::string_view(key) == "parts";
  const JsonValue* const slices = reader.object(key, !parts);
  if (slices == nullptr) return;
  ObjectReader rows = reader.nested(key, *slices);
  for (const JsonMember& member : slices->members) {
    const std::size_t at = parts ? 1 : 0;
    const std::vector<std::int64_t> row = read_row(rows, member.key, at + 2 + kSavedStates);
    if (row.empty()) continue;
    SavedSlice slice = {member.key, row[at], row[at + 1]};
    if (parts) slice.part = row[0];
    for (std::size_t s = 0; s < kSavedStates; ++s) {
      slice.crc32[s] = static_cast<std::uint32_t>(row[at + 2 + s]);
    }
    file.slices.push_back(std::move(slice));
  }
}

SavedFile read_file(ObjectReader reader) {
  SavedFile file;
  file.name = reader.string("name");
  if (std::filesystem::path(file.name).filename() != file.name || file.name.size() < 3) {
    reader.fail("name", "is not a file beside the manifest");
  }
  file.bytes = reader.integer("bytes", 0, kMost);
  file.crc32 = static_cast<std::uint32_t>(reader.integer("crc32", 0, UINT32_MAX));
  read_slices(reader, "slices", file);
  read_slices(reader, "parts", file);
  reader.reject_unknown();
  return file;
}

void write_cuts(JsonWriter& json, const std::vector<SavedTensor>& tensors) {
  const auto is_cut = [](const SavedTensor& tensor) { return tensor.cut.cut(); };
  if (std::ranges::none_of(tensors, is_cut)) return;
  json.begin_object("cuts");
  for (const SavedTensor& tensor : tensors) {
    if (!is_cut(tensor)) continue;
    std::vector<std::int64_t> row = {tensor.cut.dimension, tensor.cut.ways};
    row.insert(row.end(), tensor.cut.pieces.begin(), tensor.cut.pieces.end());
    json.row(tensor.name, row);
  }
  json.end_object();
}

void read_tensors(ObjectReader reader, const JsonValue& value, Manifest& manifest) {
  for (const JsonMember& member : value.members) {
    manifest.tensors.push_back({member.key, read_row(reader, member.key, 0)});
  }
}

void read_cuts(ObjectReader reader, const JsonValue& value, Manifest& manifest) {
  std::map<std::string, SavedTensor*> tensors;
  for (SavedTensor& tensor : manifest.tensors) tensors[tensor.name] = &tensor;
  for (const JsonMember& member : value.members) {
    const std::vector<std::int64_t> row = read_row(reader, member.key, 0);
    if (row.size() != member.value.elements.size()) continue;
    const auto found = tensors.find(member.key);
    if (found == tensors.end()) {
      reader.fail(member.key, "is no tensor of the manifest");
      continue;
    }
    SavedTensor& tensor = *found->second;
    const std::string wrong = unfit_cut(tensor.shape, row);
    if (wrong.empty()) {
      tensor.cut = cut_along(tensor.shape, static_cast<std::size_t>(row[0]), row[1],
                             {row.begin() + 2, row.end()});
    } else {
      reader.fail(member.key, wrong);
    }
  }
}

std::uint64_t read_seed(ObjectReader& reader) {
  const std::string text = reader.string("seed");
  std::uint64_t seed = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
    reader.fail("seed", fmt::format("{} is no number of 64 bits", text));
  }
  return seed;
}

Manifest read_members(ObjectReader& reader) {
  Manifest manifest;
  reader.string("crc32");
  manifest.run = reader.string_or("run", kUnnamedRun);
  if (!is_run_id(manifest.run)) {
    reader.fail("run", fmt::format("{} is no name of a run", manifest.run));
  }
  manifest.step = reader.integer("step", 0, kMost);
  manifest.sequence = reader.integer("sequence", 0, kMost);
  manifest.seed = read_seed(reader);
  manifest.model = reader.string("model");
  manifest.plan_digest = reader.string("plan_digest");
  manifest.engine = reader.string("engine");
  manifest.zero_stage = reader.integer("zero_stage", 0, 3);
  manifest.dp_shard = reader.integer("dp_shard", 1, kMost);
  manifest.dp_replicate = reader.integer("dp_replicate", 1, kMost);
  manifest.tp = reader.integer_or("tp", 1, 1, kMost);
  manifest.pp = reader.integer_or("pp", 1, 1, kMost);
  manifest.vpp = reader.integer_or("vpp", 1, 1, kMost);
  if (const JsonValue* const rules = reader.object("optimizer")) {
    manifest.optimizer = read_optimizer(reader.nested("optimizer", *rules));
  }
  if (const JsonValue* const data = reader.object("data", false)) {
    manifest.data = read_data(reader.nested("data", *data));
  }
  if (const JsonValue* const tensors = reader.object("tensors")) {
    read_tensors(reader.nested("tensors", *tensors), *tensors, manifest);
  }
  if (const JsonValue* const cuts = reader.object("cuts", false)) {
    read_cuts(reader.nested("cuts", *cuts), *cuts, manifest);
  }
  if (const JsonValue* const files = reader.array("files")) {
    for (std::size_t i = 0; i < files->elements.size(); ++i) {
      manifest.files.push_back(read_file(reader.nested("files", i, files->elements[i])));
    }
  }
  reader.reject_unknown();
  return manifest;
}

}  // namespace

std::string to_json(const SavedFile& file) {
  JsonWriter json;
  json.begin_object();
  write_file(json, file);
  json.end_object();
  return json.text();
}

Result<SavedFile> parse_saved_file(const std::string& text) {
  const Result<JsonValue> root = parse_json(text, "rank");
  if (!root) return root.problems();
  Diagnostics problems;
  SavedFile file = read_file(ObjectReader(*root, "rank", "", problems));
  if (!problems.empty()) return problems;
  return file;
}

std::string to_json(const Manifest& manifest) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", kManifestSchema);
  json.member("crc32", kZeros);
  json.member("run", manifest.run);
  json.member("step", manifest.step);
  json.member("sequence", manifest.sequence);
  json.member("seed", std::to_string(manifest.seed));
  json.member("model", manifest.model);
  json.member("plan_digest", manifest.plan_digest);
  json.member("engine", manifest.engine);
  json.member("zero_stage", manifest.zero_stage);
  json.member("dp_shard", manifest.dp_shard);
  json.member("dp_replicate", manifest.dp_replicate);
  json.member("tp", manifest.tp);
  json.member("pp", manifest.pp);
  json.member("vpp", manifest.vpp);
  write_optimizer(json, manifest.optimizer);
  write_data(json, manifest.data);
  json.begin_object("tensors");
  for (const SavedTensor& tensor : manifest.tensors) json.row(tensor.name, tensor.shape);
  json.end_object();
  write_cuts(json, manifest.tensors);
  json.begin_array("files");
  for (const SavedFile& file : manifest.files) {
    json.begin_object();
    write_file(json, file);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return with_checksum(json.text());
}

std::string with_checksum(std::string text) {
  const std::size_t at = checksum_place(text);
  if (at == std::string::npos) return text;
  text.replace(at, kZeros.size(), kZeros);
  return text.replace(at, kZeros.size(), fmt::format("{:08x}", checksum(text)));
}

Result<Manifest> parse_manifest(const std::string& text, const std::string& file) {
  if (checksum_place(text) == std::string::npos || with_checksum(text) != text) {
    return Diagnostic{file,
                      0,
                      0,
                      "/crc32",
                      "is not the checksum of this text",
                      "the manifest is truncated or was altered; take another checkpoint"};
  }
  const Result<JsonValue> root = parse_json(text, file);
  if (!root) return root.problems();
  Diagnostics problems;
  ObjectReader reader(*root, file, "", problems);
  reader.require_schema(kManifestSchema);
  Manifest manifest = read_members(reader);
  if (problems.empty()) check_cover(manifest, file, problems);
  if (!problems.empty()) return problems;
  return manifest;
}

Result<Manifest> read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestName;
  const Result<std::string> text = read_regular_file(path, SymbolicLinks::refused);
  if (!text) return text.problems();
  return parse_manifest(*text, path.string());
}

std::optional<std::string> run_of_checkpoint(const std::filesystem::path& folder) {
  const Result<int> opened = open_regular_file(folder / kManifestName, SymbolicLinks::refused);
  if (!opened) return std::nullopt;
  const FileDescriptor file(*opened);
  std::array<char, kHeadBytes> bytes{};
  const ssize_t got = ::pread(file.number(), bytes.data(), bytes.size(), 0);
  const std::string_view head(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  if (head.find(kSchemaKey) == std::string_view::npos) return std::nullopt;
  const std::size_t step = head.find(kStepKey);
  const std::size_t key = head.find(kRunKey);
  if (step == std::string_view::npos) return std::nullopt;
  if (key > step) return std::string(kUnnamedRun);
  const std::string_view run = head.substr(key + kRunKey.size(), kUnnamedRun.size());
  return is_run_id(run) ? std::optional(std::string(run)) : std::nullopt;
}

}  // namespace shardwise::exec
