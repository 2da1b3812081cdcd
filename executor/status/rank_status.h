#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/text/enum_names.h"

namespace shardwise::exec {

// Status of ranks of a live job, as it travels between its processes and to those that ask.

/// Status of one stream of a rank.
struct StreamStatus {
  std::string stream;      // "compute", "all_gather" …
  std::string operation;   // as reports name it; empty: none
  std::string collective;  // that it is, "all_gather"; empty: none
  std::string axis;        // of the mesh that the collective is over, "dp_shard"; empty: none
  std::string waits_for;   // the operation that has to end first; empty: it runs
  double since_s = 0;      // that it has waited or run
};

/// The operation and what it is, as messages have it: "gather.layer1.mb0 (all_gather over
/// dp_shard)".
std::string whole_name(const StreamStatus& stream);

/// Work a rank is busy with.
enum class Phase : std::uint8_t {
  preparing,  // reads plan, data and checkpoint
  initialising,
  training,
  comparing_replicas,
  saving_checkpoint,
  saving_weights,
  gathering_records,
  calibrating,
};

/// Whether a rank said what it does when it was asked.
enum class Answer : std::uint8_t {
  given,
  silent,  // it is stopped, or its machine does not answer
  over,    // it has ended as it should, or releases its resources
  gone,    // its process ended
};

struct RankStatus {
  std::int32_t rank = 0;
  std::string host;
  std::int32_t process = 0;
  Answer answer = Answer::given;
  double heard_s = 0;  // since it was last heard, when what follows was so; 0: it was not silent
  Phase phase = Phase::preparing;
  std::int64_t step = 0;   // under way, counted from 1; 0 before the first
  std::int64_t steps = 0;  // in all; 0: not known
  double since_s = 0;      // that the phase or the step has lasted
  std::vector<StreamStatus> streams;
};

struct JobStatus {
  std::string job;            // 16 hexadecimal digits
  bool answers = true;        // what follows `process` is known
  std::int64_t user = 0;      // of its processes here, as the kernel names it
  std::int32_t process = 0;   // that was asked first, likewise
  std::string verb;           // "train", "calibrate"
  std::string plan;           // the file, as the user named it; empty: none
  std::string folder;         // of its checkpoints, an absolute path; empty: none
  std::int32_t launcher = 0;  // the process that started those of the ranks, of ours; 0: none
  double age_s = 0;           // of the process that answers
  std::vector<RankStatus> ranks;

  /// Whether the job answers, and all ranks said what they do or have ended.
  bool all_answer() const;
};

inline constexpr std::string_view kStatusSchema = "shardwise.status/1";
/// Bounds of what is read.
inline constexpr std::size_t kMostStatusRanks = 100'000;

std::string json_of(const RankStatus& rank);
std::string json_of(const JobStatus& job);
/// `shardwise.status/1`: several jobs.
std::string json_of(const std::vector<JobStatus>& jobs);
/// Nothing where the text is none of json_of(): texts of others are read too.
std::optional<RankStatus> read_rank_status(std::string_view text);
std::optional<JobStatus> read_job_status(std::string_view text);

}  // namespace shardwise::exec

namespace shardwise {

template <>
inline constexpr std::array<std::string_view, 8> kNamesOf<exec::Phase> = {
    "preparing",         "initialising",   "training",          "comparing replicas",
    "saving checkpoint", "saving weights", "gathering records", "calibrating"};
template <>
inline constexpr std::array<std::string_view, 4> kNamesOf<exec::Answer> = {"given", "silent",
                                                                           "over", "gone"};

}  // namespace shardwise
