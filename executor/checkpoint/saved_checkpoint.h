#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/checkpoint/manifest.h"
#include "executor/engine/rank_state.h"
#include "executor/storage/safetensors_file.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// A complete checkpoint, open for reading: its tensors whole, however many ranks wrote them, and
/// whatever parts each had.
class SavedCheckpoint {
 public:
  /// \param folder  with a manifest
  /// \param step    that the manifest has to have, where the folder's name says it
  /// \returns what is wrong: a manifest or a file that is missing, truncated, altered, of another
  ///          length or a symbolic link, a tensor that a file lacks or has besides, another step
  static Result<SavedCheckpoint> open(const std::filesystem::path& folder,
                                      std::optional<std::int64_t> step = std::nullopt);

  const Manifest& manifest() const { return manifest_; }
  /// Reads the files f with f mod shares == share and compares every checksum. \returns the slices
  /// that were altered, with their places in the file. \throws IoError
  Diagnostics altered(std::size_t share, std::size_t shares) const;
  /// Tensors of a plan's model that it lacks, has besides, or has in another shape.
  Diagnostics differences(const std::vector<SavedTensor>& tensors) const;

  /// Elements from `begin` on of one state of a whole tensor. \pre they are its \throws IoError
  void read(SavedState state, const std::string& tensor, std::int64_t begin,
            std::span<float> values) const;

 private:
  /// One rank's slice of a tensor, or of a part of it.
  struct Piece {
    std::size_t file = 0;
    const SavedSlice* slice = nullptr;
    std::array<const StoredTensor*, kSavedStates> stored{};
  };

  /// All slices of a tensor, in the order of parts and elements.
  struct Pieces {
    const TensorCut* cut = nullptr;
    std::vector<Piece> slices;
  };

  Diagnostics find_pieces();
  void read_part(SavedState state, const std::vector<Piece>& slices, std::int64_t part,
                 std::int64_t begin, std::span<float> values) const;
  Diagnostics other_lengths() const;
  std::uint32_t checksum(std::size_t file, std::int64_t begin, std::int64_t count) const;
  void name_altered(std::size_t file, Diagnostics& problems) const;

  std::filesystem::path folder_;
  Manifest manifest_;
  std::vector<SafetensorsFile> files_;
  std::unordered_map<std::string, Pieces> pieces_;  // by tensor
};

/// Fills what a rank keeps of weights and moments, a MiB at a time. \pre the checkpoint has the
/// rank's tensors
void load_state(const SavedCheckpoint& saved, const RankState& state, const Arena& arena,
                Device& device);

}  // namespace shardwise::exec
