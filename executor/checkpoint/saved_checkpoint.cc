#include "executor/checkpoint/saved_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "executor/checkpoint/rank_part.h"
#include "executor/storage/durable_file.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

constexpr const char* kTakeAnother = "take another checkpoint";
constexpr std::int64_t kBlock = std::int64_t{1} << 20;

Diagnostic altered_file(const std::string& file, const std::string& tensor, std::string message) {
  const std::string path = tensor.empty() ? "" : "/" + tensor;
  return {file, 0, 0, path, std::move(message), kTakeAnother};
}

/// What is lost with a file: "it has parts of a, b, c and 9 tensors more; take another checkpoint".
std::string lost_with(const SavedFile& file) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> names;
  for (const SavedSlice& slice : file.slices) names.push_back(slice.tensor);
  const std::size_t more = names.size() - std::min(names.size(), kNamed);
  names.resize(names.size() - more);
  if (names.empty()) return kTakeAnother;
  return fmt::format("it has parts of {}{}; {}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} tensors more", more) : "", kTakeAnother);
}

}  // namespace

Result<SavedCheckpoint> SavedCheckpoint::open(const std::filesystem::path& folder,
                                              std::optional<std::int64_t> step) {
  Result<Manifest> manifest = read_manifest(folder);
  if (!manifest) return manifest.problems();
  if (step && manifest->step != *step) {
    return Diagnostic{(folder / kManifestName).string(),
                      0,
                      0,
                      "/step",
                      fmt::format("is {}, which is not that of its folder", manifest->step),
                      ""};
  }
  SavedCheckpoint saved;
  saved.folder_ = folder;
  saved.manifest_ = *std::move(manifest);
  Diagnostics problems;
  for (const SavedFile& file : saved.manifest_.files) {
    Result<SafetensorsFile> opened =
        SafetensorsFile::open(folder / file.name, SymbolicLinks::refused);
    if (opened) {
      saved.files_.push_back(*std::move(opened));
    } else {
      for (Diagnostic each : opened.problems()) {
        if (each.hint.empty()) each.hint = lost_with(file);
        problems.push_back(std::move(each));
      }
    }
  }
  if (problems.empty()) problems = saved.find_pieces();
  if (problems.empty()) problems = saved.other_lengths();
  if (!problems.empty()) return problems;
  return saved;
}

Diagnostics SavedCheckpoint::other_lengths() const {
  Diagnostics problems;
  for (std::size_t f = 0; f < files_.size(); ++f) {
    if (files_[f].bytes() == manifest_.files[f].bytes) continue;
    problems.push_back(altered_file(files_[f].name(), "",
                                    fmt::format("has {} bytes, the manifest has {}",
                                                files_[f].bytes(), manifest_.files[f].bytes)));
  }
  return problems;
}

Diagnostics SavedCheckpoint::find_pieces() {
  Diagnostics problems;
  for (std::size_t f = 0; f < files_.size(); ++f) {
    const SafetensorsFile& file = files_[f];
    std::unordered_map<std::string, const StoredTensor*> stored;
    for (const StoredTensor& each : file.tensors()) stored[each.spec.name] = &each;
    for (const SavedSlice& slice : manifest_.files[f].slices) {
      Piece piece = {f, &slice, {}};
      for (std::size_t s = 0; s < kSavedStates; ++s) {
        const std::string name = stored_name(s, slice.tensor);
        const auto found = stored.find(name);
        const TensorSpec expected = {name, StoredType::f32, {slice.count}};
        if (found == stored.end()) {
          problems.push_back(
              altered_file(file.name(), name, "is missing, the manifest has it here"));
        } else if (found->second->spec != expected) {
          problems.push_back(altered_file(
              file.name(), name,
              fmt::format("is not what the manifest has: F32 of shape [{}]", slice.count)));
        } else {
          piece.stored[s] = found->second;
        }
        stored.erase(name);
      }
      pieces_[slice.tensor].slices.push_back(piece);
    }
    for (const auto& extra : stored) {
      problems.push_back(
          altered_file(file.name(), extra.first, "is extra, the manifest does not list it"));
    }
  }
  for (const SavedTensor& tensor : manifest_.tensors) {
    Pieces& pieces = pieces_[tensor.name];
    pieces.cut = &tensor.cut;
    std::ranges::sort(pieces.slices, {}, [](const Piece& piece) {
      return std::pair(piece.slice->part, piece.slice->begin);
    });
  }
  return problems;
}

/// Of `count` bytes of a file, a block at a time.
std::uint32_t SavedCheckpoint::checksum(std::size_t file, std::int64_t begin,
                                        std::int64_t count) const {
  std::vector<std::byte> block(static_cast<std::size_t>(std::min(kBlock, count)));
  std::uint32_t crc32 = 0;
  for (std::int64_t at = 0; at < count; at += kBlock) {
    const auto bytes =
        std::span(block).first(static_cast<std::size_t>(std::min(kBlock, count - at)));
    files_[file].read_file(begin + at, bytes);
    crc32 = crc32_of(crc32, bytes);
  }
  return crc32;
}

/// The slices of a file that are not those of the manifest; its header, when all of them are.
void SavedCheckpoint::name_altered(std::size_t file, Diagnostics& problems) const {
  const std::size_t before = problems.size();
  for (const auto& tensor : pieces_) {
    for (const Piece& piece : tensor.second.slices) {
      if (piece.file != file) continue;
      for (std::size_t s = 0; s < kSavedStates; ++s) {
        const StoredTensor& stored = *piece.stored[s];
        const std::int64_t begin = files_[file].begin_of(stored);
        const std::int64_t bytes = stored.spec.bytes();
        if (checksum(file, begin, bytes) == piece.slice->crc32[s]) continue;
        problems.push_back(altered_file(
            files_[file].name(), stored.spec.name,
            fmt::format("was altered: its checksum differs (bytes {} to {} of the file)", begin,
                        begin + bytes - 1)));
      }
    }
  }
  if (problems.size() > before) return;
  problems.push_back(
      altered_file(files_[file].name(), "", "its header was altered: its checksum differs"));
}

Diagnostics SavedCheckpoint::altered(std::size_t share, std::size_t shares) const {
  Diagnostics problems;
  for (std::size_t f = share; f < files_.size(); f += shares) {
    const SavedFile& saved = manifest_.files[f];
    if (checksum(f, 0, saved.bytes) != saved.crc32) name_altered(f, problems);
  }
  return problems;
}

Diagnostics SavedCheckpoint::differences(const std::vector<SavedTensor>& tensors) const {
  const std::string file = (folder_ / kManifestName).string();
  std::map<std::string, std::vector<std::int64_t>> saved;
  for (const SavedTensor& each : manifest_.tensors) saved[each.name] = each.shape;
  Diagnostics problems;
  const auto fail = [&](const std::string& tensor, std::string message) {
    problems.push_back({file, 0, 0, json_pointer("/tensors", tensor), std::move(message),
                        "resume with a plan of the same model"});
  };
  for (const SavedTensor& wanted : tensors) {
    const auto found = saved.find(wanted.name);
    if (found == saved.end()) {
      fail(wanted.name, "is missing, the plan's model has it");
    } else if (found->second != wanted.shape) {
      fail(wanted.name, fmt::format("has shape [{}], in the plan's model [{}]",
                                    fmt::join(found->second, ", "), fmt::join(wanted.shape, ", ")));
    }
    if (found != saved.end()) saved.erase(found);
  }
  for (const auto& extra : saved) fail(extra.first, "is extra, the plan's model does not have it");
  return problems;
}

void SavedCheckpoint::read_part(SavedState state, const std::vector<Piece>& slices,
                                std::int64_t part, std::int64_t begin,
                                std::span<float> values) const {
  const std::int64_t end = begin + std::ssize(values);
  const auto ends_before = [&](const Piece& piece) {
    const SavedSlice& slice = *piece.slice;
    return slice.part < part || (slice.part == part && slice.begin + slice.count <= begin);
  };
  std::int64_t at = begin;
  for (auto next = std::ranges::partition_point(slices, ends_before); at < end; ++next) {
    SHARDWISE_CHECK(next != slices.end() && next->slice->part == part, "is whole");
    const std::int64_t last = std::min(end, next->slice->begin + next->slice->count);
    const std::span<float> to =
        values.subspan(static_cast<std::size_t>(at - begin), static_cast<std::size_t>(last - at));
    constexpr std::int64_t kEach = sizeof(float);
    files_[next->file].read(*next->stored[static_cast<std::size_t>(state)],
                            (at - next->slice->begin) * kEach, std::as_writable_bytes(to));
    at = last;
  }
}

void SavedCheckpoint::read(SavedState state, const std::string& tensor, std::int64_t begin,
                           std::span<float> values) const {
  const Pieces& pieces = pieces_.at(tensor);
  if (!pieces.cut->cut()) return read_part(state, pieces.slices, kWholeTensor, begin, values);
  for_part_runs(*pieces.cut, begin, std::ssize(values), [&](const PartRun& run) {
    read_part(state, pieces.slices, run.rank, run.part,
              values.subspan(static_cast<std::size_t>(run.whole - begin),
                             static_cast<std::size_t>(run.count)));
  });
}

namespace {

/// One state of a rank's elements of a unit from `begin` on. Rows that an engine adds are zeros.
void read_unit(const SavedCheckpoint& saved, SavedState state, const StateUnit& unit,
               const DataParallelPlace& place, std::int64_t begin, std::span<float> values) {
  const auto source = [&](const UnitTensor& tensor, std::int64_t first, std::span<float> to) {
    saved.read(state, tensor.name, first, to);
  };
  std::ranges::fill(values, 0.0F);
  for (const UnitTensor& tensor : unit.tensors) {
    const std::int64_t first = std::max(begin, tensor.begin);
    const std::int64_t last =
        std::min(begin + std::ssize(values), tensor.begin + filled_of(tensor, place));
    if (first >= last) continue;
    read_part(source, tensor, place.tp_rank, first - tensor.begin,
              values.subspan(static_cast<std::size_t>(first - begin),
                             static_cast<std::size_t>(last - first)));
  }
}

/// put(first, values) for runs of `count` elements from `begin` on, one span for each of `states`.
template <std::size_t kStates, class Put>
void load(const SavedCheckpoint& saved, const std::array<SavedState, kStates>& states,
          const StateUnit& unit, const DataParallelPlace& place, std::int64_t begin,
          std::size_t count, Put put) {
  constexpr std::size_t kStaged = std::size_t{1} << 18;
  std::array<std::vector<float>, kStates> values;
  for (std::size_t at = 0; at < count; at += kStaged) {
    for (std::size_t s = 0; s < kStates; ++s) {
      values[s].resize(std::min(kStaged, count - at));
      read_unit(saved, states[s], unit, place, begin + static_cast<std::int64_t>(at), values[s]);
    }
    put(at, values);
  }
}

}  // namespace

void load_state(const SavedCheckpoint& saved, const RankState& state, const Arena& arena,
                Device& device) {
  const std::unique_ptr<DeviceStream> stream = device.stream(StreamPriority::normal);
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    const RankState::View view = state.view(arena, 0, u);
    const StateUnit& unit = state.units().units[u];
    const auto fill = [&](SavedState which, std::int64_t begin, const TensorView& to) {
      const auto put = [&](std::size_t first, const auto& values) {
        upload_numbers(to.part(first, values[0].size()), values[0], device, *stream);
      };
      load<1>(saved, {which}, unit, state.place(), begin, to.count, put);
    };
    fill(SavedState::weights, state.keeps(u).begin, view.weights);
    fill(SavedState::first_moment, view.held.begin, view.exp_avg);
    load<2>(saved, {SavedState::weights, SavedState::second_moment}, unit, state.place(),
            view.held.begin, view.exp_avg_sq.count, [&](std::size_t first, const auto& values) {
              RankState::upload(view, first, values[0], values[1], device, *stream);
            });
  }
  device.synchronize(*stream);
}

}  // namespace shardwise::exec
