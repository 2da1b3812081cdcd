#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/run_id.h"
#include "executor/data/data_identity.h"
#include "executor/optimizer/adamw.h"
#include "planner/lowering/operands/tensor_slice.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

// Manifest of a checkpoint, its manifest.json. docs/formats.md, Checkpoint.

/// States kept of every parameter, each as fp32.
enum class SavedState : std::uint8_t { weights, first_moment, second_moment };
inline constexpr std::size_t kSavedStates = 3;
inline constexpr std::array<std::string_view, kSavedStates> kSavedStateNames = {
    "weights", "first_moment", "second_moment"};

inline constexpr std::int64_t kWholeTensor = -1;

/// Neighbouring elements of a tensor, counted row by row, and the checksum of each of their states;
/// of a tensor that tensor parallelism cuts, neighbours in one rank's part of it.
struct SavedSlice {
  std::string tensor;
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::array<std::uint32_t, kSavedStates> crc32{};
  std::int64_t part = kWholeTensor;  // the number of that part
};

/// A safetensors file with the slices of one rank: "weights/NAME", "first_moment/NAME",
/// "second_moment/NAME", each of shape [count].
struct SavedFile {
  std::string name;
  std::int64_t bytes = 0;
  std::uint32_t crc32 = 0;
  std::vector<SavedSlice> slices;
};

struct SavedTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // of the whole tensor
  TensorCut cut = {};               // NOLINT(*-redundant-member-init): into the parts of slices
  friend bool operator==(const SavedTensor&, const SavedTensor&) = default;
};

struct Manifest {
  std::string run = std::string(kUnnamedRun);
  std::int64_t step = 0;      // the next one: so many have been trained
  std::int64_t sequence = 0;  // number of the first sequence that it reads
  std::uint64_t seed = 0;     // that decided weights and the order of sequences
  std::string model;          // how it was trained, for people: any plan of the model may go on
  std::string plan_digest;
  std::string engine;
  std::int64_t zero_stage = 0;
  std::int64_t dp_shard = 1;
  std::int64_t dp_replicate = 1;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t vpp = 1;
  OptimizerRules optimizer;
  DataIdentity data;  // without a digest where it was not kept
  std::vector<SavedTensor> tensors;
  std::vector<SavedFile> files;
};

inline constexpr const char* kManifestName = "manifest.json";

/// The text of manifest.json, its own checksum in it.
std::string to_json(const Manifest& manifest);
/// The text with the checksum it should have in the place of the one it has.
std::string with_checksum(std::string text);
/// Refuses a text that is not the one its checksum was made of, cuts that do not fit their tensors,
/// and slices that do not cover every tensor once.
Result<Manifest> parse_manifest(const std::string& text, const std::string& file);
/// The manifest of a checkpoint's folder.
Result<Manifest> read_manifest(const std::filesystem::path& folder);
/// The run that the beginning of a folder's manifest names, without a look at the rest; nothing
/// where it does not say. Of folders with many checkpoints whole manifests would take long.
std::optional<std::string> run_of_checkpoint(const std::filesystem::path& folder);

/// One rank's file as the manifest lists it, so that ranks can tell one another.
std::string to_json(const SavedFile& file);
Result<SavedFile> parse_saved_file(const std::string& text);

}  // namespace shardwise::exec
