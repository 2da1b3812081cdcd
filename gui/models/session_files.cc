#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gui/models/compared.h"
#include "gui/models/file_kind.h"
#include "gui/models/left_view.h"
#include "gui/models/open_question.h"
#include "gui/models/session.h"
#include "planner/cost/legality.h"
#include "planner/spec/error.h"

namespace shardwise::view {
namespace {

/// Where a job may end with what is wrong.
template <class Read>
Result<Read> read_or_say(const std::string& path, const std::function<Result<Read>()>& read) {
  try {
    return read();
  } catch (const IoError& error) {
    return Diagnostic{path, 0, 0, "", error.what(), ""};
  }
}

}  // namespace

void Session::fail(const std::string& path, const Diagnostics& problems) {
  done_reading(path);
  failure_ = one_line(problems);
  say(failure_);
}

void Session::read(const std::string& path, Worker::Job job) {
  reading_.push_back(path);
  state_.compare.reading = reading_.front();
  state_.compare.read = {};
  reader_.post(path, std::move(job));  // files are read one after the other
}

void Session::done_reading(const std::string& path) {
  std::erase(reading_, path);
  state_.compare.reading = reading_.empty() ? "" : reading_.front();
  state_.compare.read = {};
}

void Session::stop_reading() {
  if (reading_.empty()) return;
  const std::string path = reading_.front();
  reader_.drop(path);
  done_reading(path);
  say("stopped reading " + path);
}

void Session::save_view(const std::string& path, const LeftView& view) {
  failure_ = save(path, to_json(view));
  if (!failure_.empty()) say(failure_);
}

std::string Session::load_view(const std::string& path) {
  const Result<LeftView> view = read_view(path);
  if (!view) return one_line(view.problems());
  state_.panels = view->panels;
  say("panels as in " + path);
  return "";
}

void Session::open_compared(const std::string& path) {
  read(path, [this, path](const Worker::Task& task) -> Worker::Apply {
    ReadListener listening;
    listening.stop = task.stop;
    listening.say = [&](ReadSoFar read) {
      task.publish([this, read] { state_.compare.read = read; });
    };
    auto read = std::make_shared<Result<Compared>>(
        read_or_say<Compared>(path, [&] { return read_compared(path, listening); }));
    return [this, path, read] {
      if (!read->ok()) return fail(path, read->problems());
      done_reading(path);
      say("comparing with " + path);
      compare_with(std::make_shared<const Compared>(*std::move(*read)));
    };
  });
}

void Session::open_file(const std::string& path) {
  const auto now = std::make_shared<const Plan>(state_.plan);
  read(path, [this, path, now](const Worker::Task&) -> Worker::Apply {
    const auto kind = std::make_shared<Result<FileKind>>(
        read_or_say<FileKind>(path, [&] { return kind_of_file(path); }));
    if (!kind->ok()) return [this, path, kind] { fail(path, kind->problems()); };
    if (**kind == FileKind::report || **kind == FileKind::trace) {
      return [this, path] {
        done_reading(path);
        open_compared(path);
      };
    }
    if (**kind == FileKind::metrics) {
      return [this, path] {
        done_reading(path);
        follow(path);
      };
    }
    const auto plan = std::make_shared<Result<Plan>>(read_or_say<Plan>(path, [&]() -> Result<Plan> {
      if (**kind == FileKind::model) return with_model(*now, path);
      if (**kind == FileKind::cluster) return with_cluster(*now, path);
      return read_plan(path, check_plan);
    }));
    return [this, path, plan] {
      if (!plan->ok()) return fail(path, plan->problems());
      done_reading(path);
      say("opened " + path);
      change(*std::move(*plan), Change::question);
    };
  });
}

}  // namespace shardwise::view
