#include "executor/status/rank_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/json/fields.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"

namespace shardwise::exec {
namespace {

constexpr double kMostSeconds = 1e12;
constexpr std::int64_t kMostSteps = std::int64_t{1} << 60;
constexpr std::size_t kMostStreams = 64;
/// A rank has about 60 of them.
constexpr std::size_t kMostStatusValues = 4'000'000;

struct StreamFields {
  template <class Io, class T>
  void operator()(Io& io, T& stream) const {
    static_assert(field_count<StreamStatus>() == 6, "list the new field");
    io.text("stream", stream.stream);
    io.text("operation", stream.operation);
    io.text("collective", stream.collective);
    io.text("axis", stream.axis);
    io.text("waits_for", stream.waits_for);
    io.number("since_s", stream.since_s, 0, kMostSeconds);
  }
};

struct RankFields {
  template <class Io, class T>
  void operator()(Io& io, T& rank) const {
    static_assert(field_count<RankStatus>() == 10, "list the new field");
    io.integer("rank", rank.rank, 0, INT32_MAX);
    io.text("host", rank.host);
    io.integer("process", rank.process, 0, INT32_MAX);
    io.choice("answer", rank.answer);
    io.number("heard_s", rank.heard_s, 0, kMostSeconds);
    io.choice("phase", rank.phase);
    io.integer("step", rank.step, 0, kMostSteps);
    io.integer("steps", rank.steps, 0, kMostSteps);
    io.number("since_s", rank.since_s, 0, kMostSeconds);
    io.objects("streams", rank.streams, kMostStreams, StreamFields());
  }
};

struct JobFields {
  template <class Io, class T>
  void operator()(Io& io, T& job) const {
    static_assert(field_count<JobStatus>() == 10, "list the new field");
    io.text("job", job.job);
    io.boolean("answers", job.answers);
    io.integer("user", job.user, 0, UINT32_MAX);
    io.integer("process", job.process, 0, INT32_MAX);
    io.text("verb", job.verb);
    io.text("plan", job.plan);
    io.text("folder", job.folder);
    io.integer("launcher", job.launcher, 0, INT32_MAX);
    io.number("age_s", job.age_s, 0, kMostSeconds);
    io.objects("ranks", job.ranks, kMostStatusRanks, RankFields());
  }
};

template <class T, class Fields>
std::string written(const T& value, Fields fields) {
  JsonWriter json;
  FieldWriter io(json);
  json.begin_object();
  fields(io, value);
  json.end_object();
  return json.text();
}

template <class T, class Fields>
std::optional<T> read_status(std::string_view text, Fields fields) {
  const Result<JsonValue> json = parse_json(text, "status", kMostStatusValues);
  if (!json) return std::nullopt;
  Diagnostics problems;
  ObjectReader reader(*json, "status", "", problems);
  FieldReader io(reader);
  T value;
  fields(io, value);
  reader.reject_unknown();
  return problems.empty() ? std::optional<T>(std::move(value)) : std::nullopt;
}

}  // namespace

std::string whole_name(const StreamStatus& stream) {
  if (stream.collective.empty()) return stream.operation;
  return fmt::format("{} ({} over {})", stream.operation, stream.collective, stream.axis);
}

bool JobStatus::all_answer() const {
  return answers && std::ranges::all_of(ranks, [](const RankStatus& each) {
           return each.answer == Answer::given || each.answer == Answer::over;
         });
}

std::string json_of(const RankStatus& rank) { return written(rank, RankFields()); }
std::string json_of(const JobStatus& job) { return written(job, JobFields()); }

std::string json_of(const std::vector<JobStatus>& jobs) {
  JsonWriter json;
  FieldWriter io(json);
  json.begin_object();
  json.member("schema", kStatusSchema);
  io.objects("jobs", jobs, jobs.size(), JobFields());
  json.end_object();
  return json.text();
}

std::optional<RankStatus> read_rank_status(std::string_view text) {
  return read_status<RankStatus>(text, RankFields());
}
std::optional<JobStatus> read_job_status(std::string_view text) {
  return read_status<JobStatus>(text, JobFields());
}

}  // namespace shardwise::exec
